package step_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// printout is a case of testdata/recognize.
type printout struct{ name, command, output, want string }

// MustPrintouts reads a file of cases.
func MustPrintouts(tb testing.TB, path string) []printout {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var cases []printout
	for _, text := range strings.Split(string(content), "\n$ ")[1:] {
		command, rest, _ := strings.Cut(text, "\n")
		output, want, found := strings.Cut(rest, "=> ")
		if !found {
			tb.Fatalf("%s: %q has no arrow", path, command)
		}
		cases = append(cases, printout{filepath.Base(path) + " " + command, command, output, strings.TrimSpace(want)})
	}
	return cases
}

func allPrintouts(tb testing.TB) []printout {
	tb.Helper()
	files, err := filepath.Glob("testdata/recognize/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatal(files, err)
	}
	var all []printout
	for _, file := range files {
		all = append(all, MustPrintouts(tb, file)...)
	}
	return all
}

// What programs print is recognized, and its figures go into the metadata.
func TestRecognizedFigures(t *testing.T) {
	for _, p := range allPrintouts(t) {
		t.Run(p.name, func(t *testing.T) {
			got := reduce(nil, step.Call{
				Tool: "bash", Args: map[string]any{"command": p.command},
				Result: step.Result{BodyKey: "output", BodyText: p.output, BodySize: int64(len(p.output))},
			})
			var found, want map[string]any
			if err := json.Unmarshal(got.Metadata, &found); err != nil {
				t.Fatal(err)
			}
			for _, own := range []string{"size", "sha256", "lines"} {
				delete(found, own)
			}
			if err := json.Unmarshal([]byte(p.want), &want); err != nil {
				t.Fatalf("%s: %v", p.want, err)
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Figures of the tool itself win over what its output looks like.
func TestOwnFiguresWin(t *testing.T) {
	got := reduce(nil, shell("x", "exit code: 7\n", "", 2))
	if figure(t, got.Metadata, "exit_code") != 2.0 {
		t.Errorf("metadata %s", got.Metadata)
	}
}

// errorPattern is what lines are that say what went wrong.
var errorPattern = regexp.MustCompile(`(?i)\b(error|exception|fatal|panic|failed|traceback|cannot|denied|not found)\b`)

// wantedErrors are the first and the last three of those lines.
func wantedErrors(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); errorPattern.MatchString(line) && len(line) <= 2000 {
			all = append(all, line)
		}
	}
	if len(all) <= 6 {
		return all
	}
	return slices.Concat(all[:3], all[len(all)-3:])
}

// longRun is a test run too long to be shown, whose figures and failures stand
// in its middle.
func longRun() string {
	var b strings.Builder
	for i := range 400 {
		b.WriteString("collecting tests/unit/module_" + plain(i) + ".py and all it needs\n")
	}
	b.WriteString("FAILED tests/test_parse.py::test_dates - ValueError: bad date\n3 failed, 97 passed in 12.5s\n")
	b.WriteString("fatal: the database at /var/lib/db/main.sqlite cannot be opened\n")
	for i := range 400 {
		b.WriteString("cleaning up directory number " + plain(i) + " of them all\n")
	}
	return b.String()
}

// What the prompt does not show of a long output has its evidence: sums, the
// lines that say what went wrong, and names.
func TestEvidence(t *testing.T) {
	out := longRun()
	got := reduce(nil, shell("pytest", out, "", 1))
	for _, want := range []string{
		"3 failed, 97 passed in 12.5s", "FAILED tests/test_parse.py::test_dates - ValueError: bad date",
		"fatal: the database at /var/lib/db/main.sqlite cannot be opened",
	} {
		if !strings.Contains(got.Evidence, want) || strings.Contains(got.Inline, want) {
			t.Errorf("%q is not in the evidence %q, or shown", want, got.Evidence)
		}
	}
	if !strings.Contains(got.Evidence, "names: ") || len(got.Evidence) > step.MaxEvidenceBytes {
		t.Errorf("evidence of %d bytes: %q", len(got.Evidence), got.Evidence)
	}
	if figure(t, got.Metadata, "tests_failed") != 3.0 {
		t.Errorf("metadata %s", got.Metadata)
	}
	if short := reduce(nil, shell("pytest", "1 failed in 1s\n", "", 1)); short.Evidence != "" {
		t.Errorf("what is shown has evidence: %q", short.Evidence)
	}
}

// The lines that say what went wrong are in what is shown or in the evidence,
// wherever they stand, and of a streamed output as far as it is held.
func TestErrorLinesSurvive(t *testing.T) {
	noise := strings.Repeat("nothing to see in this line of output\n", 2000)
	text := "Error: one\n" + noise + "error two\nNOT FOUND three\nfailed four\n" + noise + "cannot five\n" + noise + "Permission denied six\nfatal: seven\n" + noise
	got := reduce(nil, shell("run", text, "", 1))
	for _, want := range wantedErrors(text) {
		if !strings.Contains(got.Inline+got.Evidence, want) {
			t.Errorf("%q is lost", want)
		}
	}
	held := step.HeldBodyBytes
	text = noise[:held/2] + "\nerror in the beginning\n" + noise + noise + noise + "\nthe end: access denied\n" + noise[:held/2-100]
	call := shell("run", "", "", 1)
	call.Result.BodyKey, call.Result.BodySize = "output", int64(len(text))
	call.Result.BodyText, call.Result.BodyTail = text[:held], text[len(text)-held:]
	got = reduce(nil, call)
	for _, want := range []string{"error in the beginning", "the end: access denied"} {
		if !strings.Contains(got.Evidence, want) {
			t.Errorf("%q is not in %q", want, got.Evidence)
		}
	}
	if !got.Offload || got.OffloadBytes != nil {
		t.Errorf("the streamed output is not offloaded as it is: %t, %d bytes", got.Offload, len(got.OffloadBytes))
	}
}

// FuzzErrorLines: the lines that are kept are those of the pattern, and nothing
// that any text can hold breaks the limits of a step.
func FuzzErrorLines(f *testing.F) {
	f.Add("an ERROR\nno_error here\r\nthe error", 3)
	f.Add("Not found\nnotfound\nnot  found\nCANNOT", 0)
	for _, p := range allPrintouts(f) {
		f.Add(p.output, 10)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if strings.ContainsAny(text, "\u017f\u212a") {
			t.Skip("the pattern's case folding knows two letters more")
		}
		text = strings.ToValidUTF8(text, "")
		long := text + "\n" + strings.Repeat("a line without a word about it\n", 600) + text
		got := step.NewReducer(&step.Options{InlineBytes: limit % 2000}).Reduce(shell("run", long, "", 1))
		if len(got.Evidence) > step.MaxEvidenceBytes {
			t.Fatalf("evidence of %d bytes", len(got.Evidence))
		}
		total := 0
		wanted := wantedErrors(long)
		for _, line := range wanted {
			total += len(line) + 1
		}
		for _, line := range wanted {
			if total < 1000 && !strings.Contains(got.Inline+"\n"+got.Evidence, line) {
				t.Fatalf("%q is lost; evidence %q", line, got.Evidence)
			}
		}
	})
}
