package history_test

import (
	"bufio"
	"encoding/json"
	"flag" //nolint:depguard // -update belongs to the test binary, no setting of the product
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

var update = flag.Bool("update", false, "rewrite the golden files from what is made")

// archive is a txtar file: prose, then parts under lines "-- name --".
type archive struct {
	prose string
	parts [][2]string
}

// MustArchive reads a txtar file.
func MustArchive(tb testing.TB, file string) archive {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var a archive
	at := &a.prose
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(name, " --") {
			a.parts = append(a.parts, [2]string{strings.TrimSuffix(name, " --"), ""})
			at = &a.parts[len(a.parts)-1][1]
			continue
		}
		*at += line
	}
	return a
}

func (a archive) part(name string) string {
	for _, p := range a.parts {
		if p[0] == name {
			return p[1]
		}
	}
	return ""
}

func (a archive) String() string {
	text := a.prose
	for _, p := range a.parts {
		text += "-- " + p[0] + " --\n" + p[1]
	}
	return text
}

// golden compares the parts that made gives with those of each file.
func golden(t *testing.T, pattern string, inputs []string, made func(t *testing.T, a archive) [][2]string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := MustArchive(t, file)
			got := archive{prose: a.prose}
			for _, name := range inputs {
				if text := a.part(name); text != "" {
					got.parts = append(got.parts, [2]string{name, text})
				}
			}
			got.parts = append(got.parts, made(t, a)...)
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(a.String(), got.String()); diff != "" {
				t.Errorf("differs (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
}

// decodeLines reads a JSON value a line.
func decodeLines[T any](tb testing.TB, text string) []T {
	tb.Helper()
	var all []T
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			tb.Fatalf("%v: %s", err, lines.Text())
		}
		all = append(all, one)
	}
	return all
}

// entryLine is an entry in a golden file.
type entryLine struct {
	history.Entry
	Is string
}

// Each file of testdata/ledger has options, a log of one JSON entry a line, and
// the history after a batch.
func TestGoldenLedger(t *testing.T) {
	golden(t, "testdata/ledger/*.txtar", []string{"options", "log"}, func(t *testing.T, a archive) [][2]string {
		opts := struct {
			history.Options
			Budget, Batches int
		}{Batches: 1}
		if text := a.part("options"); text != "" {
			if err := json.Unmarshal([]byte(text), &opts); err != nil {
				t.Fatal(err)
			}
		}
		s := session{tb: t, ledger: history.New(count, &opts.Options), budget: opts.Budget}
		all := decodeLines[entryLine](t, a.part("log"))
		var v history.View
		for b := range opts.Batches {
			for _, line := range all[b*len(all)/opts.Batches : (b+1)*len(all)/opts.Batches] {
				line.Kind = map[string]history.Kind{"turn": history.Turn, "result": history.Result, "step": history.Step}[line.Is]
				s.add(line.Entry)
			}
			v = s.batch()
		}
		var folds strings.Builder
		for _, it := range v.Items {
			if f := it.Fold; f != nil {
				fmt.Fprintf(&folds, "batch %d level %d by %s: %v %v, %d -> %d tokens, %d turns, %d of %d calls cut\n",
					f.Batch, f.Level, f.Reason, f.Spans, f.Refs, f.Before, f.Tokens, f.Turns, f.Cuts, f.Calls)
			}
		}
		return [][2]string{{"view", render(v)}, {"folds", folds.String()}}
	})
}

// Each file of testdata/preset has steps, one JSON object a line, and what the
// presets make of them.
//
// B03, B05, B06, B07, B08, B16, B19, P07, P08, P09
func TestGoldenPreset(t *testing.T) {
	golden(t, "testdata/preset/*.txtar", []string{"steps"}, func(t *testing.T, a archive) [][2]string {
		steps := decodeLines[step.Step](t, a.part("steps"))
		keepTwo := named("reduction")
		keepTwo.KeepRecent = 2
		short := named("reduction")
		short.SectionTokens = 20
		debug := named("debug")
		debug.KeepRecent = 2
		var parts [][2]string
		for _, p := range []struct {
			name   string
			preset history.Preset
		}{
			{"design", named("design")},
			{"reduction", named("reduction")},
			{"reduction, two recent", keepTwo},
			{"reduction, over its section", short},
			{"grouped", history.Preset{Style: history.StyleGrouped, Reference: step.ReferenceShort}},
			{"grouped, without groups", debug},
		} {
			c := history.NewCompactor(count, p.preset)
			older := max(len(steps)-max(p.preset.KeepRecent, 0), 0)
			if p.preset.KeepRecent == 0 {
				older = max(len(steps)-history.DefaultKeepRecent, 0)
			}
			parts = append(parts, [2]string{p.name, c.Render(steps, older) + "\n"})
		}
		return parts
	})
}
