package history_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

var (
	markLine   = regexp.MustCompile(`^\[(\d+) lines unchanged: (.*)\]$`)
	markSource = regexp.MustCompile(`(?:(?:^|, )([^,]*?) line )?(?:, )?(\d+)(?:-(\d+))?( numbered from \d+| without numbers)?(?: (\d+) times)?`)
	lineNumber = regexp.MustCompile(`^ *\d{1,7}[\t:-]`)
)

// expander puts back what marks stand for, and checks that it is really shown.
type expander struct {
	tb testing.TB
	// full has the lines of each source, shown those that the prompt shows.
	full  map[string][]string
	shown map[string]map[string]bool
}

func newExpander(tb testing.TB, v history.View) *expander {
	tb.Helper()
	x := &expander{tb, make(map[string][]string), make(map[string]map[string]bool)}
	for _, it := range v.Items {
		if it.Entry == nil {
			continue
		}
		e := it.Entry
		for _, c := range e.Calls {
			var fields map[string]any
			if json.Unmarshal([]byte(c.Args), &fields) != nil {
				continue
			}
			for key, value := range fields {
				if text, ok := value.(string); ok {
					x.add(e.Ref+" "+key, text, text)
				}
			}
		}
		switch {
		case e.Kind == history.Fixed:
			x.add(e.Ref, e.Text, e.Text)
		case e.Text != "":
			x.add(e.Ref+" said", e.Text, e.Text)
		}
		if it.Output != "" {
			full := e.Output
			if e.Shown != "" {
				full = e.Shown
			}
			x.add(e.Ref, full, it.Output)
		}
	}
	return x
}

func (x *expander) add(ref, full, shown string) {
	x.full[ref] = strings.Split(full, "\n")
	lines := make(map[string]bool)
	for line := range strings.SplitSeq(shown, "\n") {
		lines[line] = true
	}
	x.shown[ref] = lines
}

// expand returns a text as it was. Lines whose number a mark changed come
// without their number.
func (x *expander) expand(text string) []string {
	x.tb.Helper()
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		m := markLine.FindStringSubmatch(line)
		if m == nil {
			out = append(out, line)
			continue
		}
		ref, n := "", 0
		for _, piece := range markSource.FindAllStringSubmatch(m[2], -1) {
			if piece[1] != "" {
				ref = piece[1]
			}
			first, _ := strconv.Atoi(piece[2])
			last := first
			if piece[3] != "" {
				last, _ = strconv.Atoi(piece[3])
			}
			times := 1
			if piece[5] != "" {
				times, _ = strconv.Atoi(piece[5])
			}
			n += (last - first + 1) * times
			for _, line := range slices.Repeat(x.lines(ref, first, last), times) {
				if piece[4] != "" {
					line = lineNumber.ReplaceAllString(line, "")
				}
				out = append(out, line)
			}
		}
		if m[1] != strconv.Itoa(n) {
			x.tb.Errorf("mark %q names %d lines", line, n)
		}
	}
	return out
}

func (x *expander) lines(ref string, first, last int) []string {
	x.tb.Helper()
	if last > len(x.full[ref]) {
		x.tb.Fatalf("a mark names lines %d-%d of %q, which has %d", first, last, ref, len(x.full[ref]))
	}
	lines := x.full[ref][first-1 : last]
	for _, line := range lines {
		if !x.shown[ref][line] {
			x.tb.Errorf("a mark names line %q of %q, which is not shown", line, ref)
		}
	}
	return lines
}

// check expands every output of a view.
func (x *expander) check(v history.View) (marks int) {
	x.tb.Helper()
	for _, it := range v.Items {
		if it.Entry == nil || it.Output == "" {
			continue
		}
		want := it.Entry.Output
		if it.Entry.Shown != "" {
			want = it.Entry.Shown
		}
		if it.Output == want || strings.Contains(it.Output, " chars omitted. ") {
			continue
		}
		marks++
		got := x.expand(it.Output)
		wanted := strings.Split(want, "\n")
		if len(got) != len(wanted) {
			x.tb.Fatalf("entry %d has %d lines, its marks expand to %d", it.Entry.Position, len(wanted), len(got))
		}
		for i := range got {
			if got[i] != wanted[i] && got[i] != lineNumber.ReplaceAllString(wanted[i], "") {
				x.tb.Fatalf("entry %d, line %d: got %q, want %q", it.Entry.Position, i+1, got[i], wanted[i])
			}
		}
	}
	return marks
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		b.WriteString("the content of line " + strconv.Itoa(i) + "\n")
	}
	return b.String()
}

func numbered(from, to, number int, mark string) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		b.WriteString(strconv.Itoa(number+i-from) + mark + "the content of line " + strconv.Itoa(i) + "\n")
	}
	return b.String()
}

func TestDedupe(t *testing.T) {
	for _, tt := range []struct {
		name, first, second, want string
	}{
		{"four lines", lines(1, 9), "new\n" + lines(3, 6) + "end", "new\n[4 lines unchanged: 001 line 3-6]\nend"},
		{"three lines", lines(1, 9), "new\n" + lines(3, 5) + "end", "new\n" + lines(3, 5) + "end"},
		{"changed in the middle", lines(1, 20), lines(1, 8) + "changed\n" + lines(10, 20), "[8 lines unchanged: 001 line 1-8]\nchanged\n[12 lines unchanged: 001 line 10-21]"},
		{"two places", lines(1, 20), lines(15, 20) + lines(1, 5), "[11 lines unchanged: 001 line 15-20, 1-5]\n"},
		{"numbered", lines(1, 9), numbered(2, 8, 40, ":"), "[7 lines unchanged: 001 line 2-8 numbered from 40]\n"},
		{"not numbered", numbered(1, 9, 10, "\t"), lines(2, 8), "[7 lines unchanged: 001 line 2-8 without numbers]\n"},
		{"numbers jump", lines(1, 9), numbered(2, 3, 1, ":") + numbered(4, 5, 90, ":"), "[4 lines unchanged: 001 line 2-3 numbered from 1, 4-5 numbered from 90]\n"},
		{"within itself", "x\n", lines(1, 5) + "between\n" + lines(1, 5), lines(1, 5) + "between\n[5 lines unchanged: 002 line 1-5]\n"},
		{"the same again and again", "x\n", strings.Repeat("retrying in a second\n", 30), "retrying in a second\nretrying in a second\n[28 lines unchanged: 002 line 1-2 14 times]\n"},
		{"short lines only", "a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nf\n"},
		{"short lines within", "a line that is long enough\n{\n}\n\nend of it\n", "a line that is long enough\n{\n}\n\nend of it\n", "[6 lines unchanged: 001 line 1-6]"},
		{"nothing in common", lines(1, 5), lines(11, 15), lines(11, 15)},
		{"not longer than before", "aaaaaa\nb\nc\nd\n1", "aaaaaa\nb\nc\nd\n2", "aaaaaa\nb\nc\nd\n2"},
		{"a mark would be longer", "aaaaaa\nb\nc\nd\n", lines(30, 50) + "aaaaaa\nb\nc\nd\n", lines(30, 50) + "aaaaaa\nb\nc\nd\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := session{tb: t, ledger: history.New(count, nil)}
			s.step("cat a", tt.first)
			s.step("cat b", tt.second)
			v := s.view()
			got := v.Items[3].Output
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			newExpander(t, v).check(v)
		})
	}
}

// What a mark refers to comes back when its source is folded.
func TestDedupeExpandsAgain(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, &history.Options{KeepTurns: 1})}
	s.step("cat a", lines(1, 60))
	s.step("cat b", lines(20, 40))
	before := s.view()
	if got := before.Items[3].Output; !strings.HasPrefix(got, "[") {
		t.Fatalf("lines of the first step are shown again:\n%s", got)
	}
	after := s.batch()
	if len(after.Made) != 1 {
		t.Fatalf("%d folds were made, want 1", len(after.Made))
	}
	if diff := cmp.Diff(lines(20, 40), after.Items[2].Output); diff != "" {
		t.Errorf("with the source folded (-want +got):\n%s", diff)
	}
}

// What a call wrote need not be printed again.
func TestDedupeWrittenFile(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, nil)}
	s.add(
		history.Entry{Kind: history.Turn, Ref: "001", Calls: []history.Call{{ID: "a", Name: "write", Args: `{"path": "a", "content": ` + strconv.Quote(lines(1, 9)) + "}"}}},
		history.Entry{Kind: history.Result, Ref: "001", CallID: "a", Output: "ok"},
	)
	s.step("cat a", lines(1, 9))
	v := s.view()
	if got, want := v.Items[3].Output, "[10 lines unchanged: 001 content line 1-10]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	newExpander(t, v).check(v)
}

// The cap hides lines: nothing may refer to them.
func TestDedupeAgainstCapped(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, &history.Options{ResultTokens: 200})}
	s.step("cat a", lines(1, 200)+"see src/app.go\n"+lines(201, 400))
	s.step("cat b", lines(1, 10))
	s.step("cat c", lines(190, 200))
	s.step("cat d", lines(395, 400))
	v := s.view()
	if got := v.Items[1].Output; count(got) > 200 || !strings.Contains(got, " chars omitted. Full data: 001; they name: src/app.go]") {
		t.Errorf("the first output is not capped:\n%s", got)
	}
	for i, shown := range map[int]bool{3: true, 5: false, 7: true} {
		if got := strings.HasPrefix(v.Items[i].Output, "["); got != shown {
			t.Errorf("item %d is a mark: %v, want %v:\n%s", i, got, shown, v.Items[i].Output)
		}
	}
	newExpander(t, v).check(v)
}

// Every mark of random histories leads to lines that are shown.
func TestDedupeRandom(t *testing.T) {
	marks := 0
	for seed := range uint64(40) {
		g := newRandom(t, seed, &eager)
		for range 40 {
			g.grow()
			v := g.view()
			marks += newExpander(t, v).check(v)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	if marks < 100 {
		t.Errorf("only %d outputs had marks", marks)
	}
}

// Every mark of recorded runs leads to lines that are shown, and with them the
// outputs come back line by line.
func TestDedupeRecorded(t *testing.T) {
	dir := os.Getenv("LOOM_EVAL_DATA")
	if dir == "" {
		t.Skip("LOOM_EVAL_DATA does not name the folder with recorded runs")
	}
	files, err := filepath.Glob(filepath.Join(dir, "trajectories", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("no recorded runs: %v", err)
	}
	ledger := history.New(count, &history.Options{NoFold: true, ResultTokens: -1})
	marks := 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		runs, err := replay.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			v := MustCompact(t, ledger, history.History{Entries: run.Entries})
			marks += newExpander(t, v).check(v)
			if t.Failed() {
				t.Fatalf("run %s", run.ID)
			}
		}
	}
	t.Logf("%d outputs with marks", marks)
}
