package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/history"
)

func summarized(t *testing.T, opts *history.Options, summary string) history.View {
	t.Helper()
	s := session{tb: t, ledger: history.New(count, opts), budget: 100_000}
	s.user("Go on.")
	for i := range 12 {
		s.step(fmt.Sprintf("cat %d", i), listing(fmt.Sprintf("part_%d", i), 60))
		if i%4 == 0 {
			s.user("Go on.")
		}
	}
	h := s.history()
	h.Now, h.Summary = true, summary
	return MustCompact(t, s.ledger, h)
}

// A caller's summary stands beside all lines, once.
//
// B01
func TestSummaryStandsAtTheHead(t *testing.T) {
	plain := summarized(t, nil, "")
	v := summarized(t, nil, "\n The parser is\r\n\n001 fixed. ")
	if len(v.Made) < 3 || len(v.Made) != len(plain.Made) {
		t.Fatalf("%d folds, without it %d", len(v.Made), len(plain.Made))
	}
	const line = "Summary: The parser is 001 fixed.\n"
	header, lines, _ := strings.Cut(v.Made[0].Text, "\n")
	if got := header + "\n" + strings.TrimPrefix(lines, line); !strings.HasPrefix(lines, line) || got != plain.Made[0].Text {
		t.Errorf("got %s", v.Made[0].Text)
	}
	if v.Made[0].Tokens != count(v.Made[0].Text)+history.DefaultMessageTokens {
		t.Errorf("it counts as %d tokens", v.Made[0].Tokens)
	}
	for i := range v.Made[1:] {
		if v.Made[i+1].Text != plain.Made[i+1].Text {
			t.Errorf("fold %d differs: %s", i+1, v.Made[i+1].Text)
		}
	}
}

// It stands in the batch's dense fold, too.
func TestSummaryOfADenseBatch(t *testing.T) {
	v := summarized(t, &history.Options{FoldTokens: 500}, "The parser is fixed.")
	all := ""
	dense := false
	for _, f := range v.Made {
		all += f.Text
		dense = dense || f.Level == history.LevelDense
	}
	if !dense || strings.Count(all, "Summary: The parser is fixed.\n") != 1 {
		t.Errorf("got %s", all)
	}
}

// What can't stand there is left out: blank, too long, or longer than what is
// folded.
//
// B01
func TestSummaryIsLeftOut(t *testing.T) {
	for name, text := range map[string]string{
		"blank": " \n\t", "tokens": strings.Repeat("word ", 500), "bytes": strings.Repeat("=", 9000),
	} {
		v := summarized(t, nil, text)
		if len(v.Made) == 0 || strings.Contains(v.Made[0].Text, "Summary") {
			t.Errorf("%s: got %+v", name, v.Made)
		}
	}
	s := session{tb: t, ledger: history.New(count, nil)}
	s.step("cat", listing("part", 20))
	s.step("ls", "x")
	s.step("ls", "x")
	h := s.history()
	h.Now, h.Summary = true, strings.Repeat("words ", 320)
	v := MustCompact(t, s.ledger, h)
	if len(v.Made) != 1 || v.Made[0].Tokens >= v.Made[0].Before || strings.Contains(v.Made[0].Text, "Summary") {
		t.Errorf("longer than the original: got %+v", v.Made)
	}
	h.Now = false
	if v := MustCompact(t, s.ledger, h); len(v.Made) != 0 {
		t.Errorf("a summary makes no batch, but %+v", v.Made)
	}
}

// What belongs to a piece of work that is over stands in folds of its own, which name it.
//
// H16
func TestPartsFoldTogether(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, nil), budget: 100_000}
	ends := []uint64{0}
	for part := range 4 {
		for i := range 3 {
			s.step(fmt.Sprintf("cat %d.%d", part, i), listing(fmt.Sprintf("part_%d_%d", part, i), 60))
		}
		ends = append(ends, s.entries[len(s.entries)-1].Position)
	}
	h := s.history()
	h.Now = true
	plain := MustCompact(t, s.ledger, h)
	h.Parts = []history.Part{
		{Name: "Plan item done: write", After: ends[0], Through: ends[1]},
		{Name: "Plan item failed: | test it", After: ends[2], Through: ends[3]},
		{Name: "Plan item done: nothing", After: ends[4], Through: ends[4] + 9},
	}
	v := MustCompact(t, s.ledger, h)
	if len(plain.Made) != 1 || len(v.Made) != 4 {
		t.Fatalf("%d folds, %d with parts", len(plain.Made), len(v.Made))
	}
	for i, name := range []string{"\nPlan item done: write\n001 ", "", "\nPlan item failed: | test it\n007 ", ""} {
		f := &v.Made[i]
		if f.Spans[0].First != ends[i]+1 || i < 3 && f.Spans[0].Last != ends[i+1] {
			t.Errorf("fold %d holds %v, with ends %v", i, f.Spans, ends)
		}
		if name != "" && !strings.Contains(f.Text, name) || name == "" && strings.Contains(f.Text, "Plan item") {
			t.Errorf("fold %d, with %q: %s", i, name, f.Text)
		}
	}
	// All lines are there as without parts.
	for line := range strings.Lines(plain.Made[0].Text) {
		found := false
		for i := range v.Made {
			found = found || strings.Contains(v.Made[i].Text+"\n", strings.TrimSuffix(line, "\n")+"\n")
		}
		if !found {
			t.Errorf("no fold has %q", line)
		}
	}
	// A denser fold still names the part, where it has room for its steps.
	s.ledger = history.New(count, &history.Options{FoldTokens: 700})
	dense := MustCompact(t, s.ledger, h)
	all := ""
	for i := range dense.Made {
		all += dense.Made[i].Text
	}
	if !strings.Contains(all, "Plan item failed: | test it") {
		t.Errorf("got %s", all)
	}
}
