package history_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// A batch comes when waiting has cost as much as folding, no sooner; then the
// history only grows again for a long time.
func TestBatchByPrice(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, nil)}
	var batches []int
	for i := range 120 {
		s.step(fmt.Sprintf("cat file_%d", i), listing(fmt.Sprintf("part_%d", i), 12))
		v := s.view()
		d := v.Decision
		if paid := d.Rent >= history.DefaultPatience*d.Price; paid != (d.Reason == history.ByPrice) {
			t.Errorf("step %d: rent %.0f, price %.0f, but reason %q", i+1, d.Rent, d.Price, d.Reason)
		}
		if len(v.Made) > 0 {
			batches = append(batches, i)
			if d.BreakEven <= 0 || d.BreakEven > float64(i) {
				t.Errorf("step %d: break-even after %.1f turns", i+1, d.BreakEven)
			}
		}
	}
	if len(batches) < 3 || len(batches) > 12 {
		t.Errorf("batches at %v", batches)
	}
}

func TestPricesDecide(t *testing.T) {
	for _, tt := range []struct {
		name   string
		prices history.Prices
		turns  int
		want   bool
	}{
		{"default", history.Prices{}, 0, true},
		{"no cache", history.Prices{Input: 1, CachedInput: 1, CacheWrite: 1}, 0, true},
		{"reading is free", history.Prices{Input: 1, CachedInput: 0, CacheWrite: 1}, 0, false},
		{"writing is dear", history.Prices{Input: 1, CachedInput: 0.01, CacheWrite: 10}, 0, false},
		{"the session ends soon", history.Prices{}, 1, false},
		{"the session goes on", history.Prices{}, 1000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := session{tb: t, ledger: history.New(count, &history.Options{Prices: tt.prices})}
			folded := false
			for i := range 30 {
				s.step(fmt.Sprintf("cat file_%d", i), listing(fmt.Sprintf("part_%d", i), 12))
				h := s.history()
				h.ExpectedTurns = tt.turns
				v := MustCompact(t, s.ledger, h)
				folded = folded || len(v.Made) > 0
				s.folds = append(s.folds, v.Made...)
			}
			if folded != tt.want {
				t.Errorf("folded: %v, want %v", folded, tt.want)
			}
		})
	}
}

// What takes no less when it is folded stays as it is.
//
// P02
func TestNeverLonger(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, &history.Options{Header: strings.Repeat("a long header ", 40)})}
	for range 6 {
		s.step("ls", "a b")
	}
	before := render(s.view())
	v := s.batch()
	if len(v.Made) > 0 || render(v) != before {
		t.Errorf("six short steps were folded under a header of 140 tokens:\n%s", render(v))
	}
}

// The newest turns stay, and so does whatever waits for a result.
//
// P03
func TestOpenTurnStays(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, nil)}
	for i := range 4 {
		s.step(fmt.Sprint("cat ", i), listing(fmt.Sprint("part_", i), 20))
	}
	s.add(history.Entry{Kind: history.Turn, Ref: "005", Calls: []history.Call{{ID: "x", Name: "bash", Args: "{}"}, {ID: "y", Name: "bash", Args: "{}"}}})
	s.add(history.Entry{Kind: history.Result, Ref: "005", CallID: "x", Output: listing("open", 20)})
	v := s.batch()
	last := v.Items[len(v.Items)-1].Entry
	if last == nil || last.CallID != "x" {
		t.Fatalf("the open turn was folded:\n%s", render(v))
	}
	if got := v.Made[0].Spans; !slices.Equal(got, []history.Span{{First: 1, Last: 6}}) {
		t.Errorf("folded %v, want the first three steps", got)
	}
	s.add(history.Entry{Kind: history.Result, Ref: "006", CallID: "y", Output: listing("late", 20)})
	s.step("ls", "x")
	s.step("ls", "x")
	if got := s.batch().Made[0].Spans; !slices.Equal(got, []history.Span{{First: 7, Last: 11}}) {
		t.Errorf("folded %v, want the fourth step and the turn with both results", got)
	}
}

// Steps recorded before the message that asks for them are one turn with it;
// a result that comes behind a user message still belongs to its turn.
//
// P02
func TestAtoms(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, &history.Options{KeepTurns: 1})}
	call := history.Call{ID: "a", Name: "read", Args: `{"path":"x"}`}
	s.add(history.Entry{Kind: history.Step, Ref: "001", CallID: "a", Calls: []history.Call{call}, Output: listing("one", 20)})
	s.add(history.Entry{Kind: history.Turn, Ref: "m2", Calls: []history.Call{call}})
	s.add(history.Entry{Kind: history.Turn, Ref: "002", Calls: []history.Call{{ID: "b", Name: "read", Args: `{"path":"y"}`}}})
	s.user("hurry")
	s.add(history.Entry{Kind: history.Step, Ref: "003", CallID: "b", Calls: []history.Call{{ID: "b", Name: "read"}}, Output: listing("two", 20)})
	s.step("ls", "x")
	v := s.batch()
	want := []history.Span{{First: 1, Last: 3}, {First: 5, Last: 5}}
	if len(v.Made) != 1 || !slices.Equal(v.Made[0].Spans, want) {
		t.Fatalf("folds %+v, want one of %v", v.Made, want)
	}
	if text := v.Made[0].Text; strings.Count(text, "read {") != 2 {
		t.Errorf("each call should stand once:\n%s", text)
	}
}

func TestFailuresKeepTheirLines(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, nil)}
	var output strings.Builder
	for i := range 40 {
		fmt.Fprintf(&output, "compiling unit %d of the project\n", i)
		if i%4 == 0 {
			fmt.Fprintf(&output, "  unit_%d.c:%d: error: expected ';'\n", i, i)
		}
	}
	output.WriteString("builder.BuildError: ten units\n")
	s.fail("make", output.String(), 2)
	s.fail("make", "fatal: the same again\n"+strings.Repeat("noise ", 100), 2)
	s.fail("make", "fatal: the same again\n"+strings.Repeat("noise ", 100), 2)
	s.step("ls", "x")
	s.step("ls", "x")
	text := s.batch().Made[0].Text
	for i, want := range map[int]bool{0: true, 4: true, 8: true, 12: false, 24: false, 28: true, 32: true, 36: true} {
		line := fmt.Sprintf("\n|   unit_%d.c:%d: error: expected ';'\n", i, i)
		if got := strings.Contains(text, line); got != want {
			t.Errorf("line of unit %d: %v, want %v", i, got, want)
		}
	}
	if !strings.Contains(text, "\n| builder.BuildError: ten units\n") {
		t.Error("the line that names what was raised is gone")
	}
	if strings.Count(text, "fatal: the same again") != 1 {
		t.Error("a line that is shown already is shown again")
	}
	if strings.Count(text, "→ exit 2") != 3 {
		t.Errorf("exit codes are gone:\n%s", text)
	}
}

// Most calls stay as they were made; of the long ones some are cut, the
// longest first, and one in callsPerCut at most.
func TestCallsStay(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, nil)}
	for i := range 60 {
		s.step(fmt.Sprintf("cat <<EOF > f%d\n%s\nEOF", i, strings.Repeat("word ", 250+i)), "")
	}
	v := s.batch()
	cut, whole := 0, 0
	for _, e := range s.entries[:len(s.entries)-4] {
		if e.Kind != history.Turn {
			continue
		}
		if strings.Contains(v.Made[0].Text, e.Calls[0].Args) {
			whole++
			continue
		}
		cut++
	}
	if cut != v.Made[0].Cuts || cut < 2 || cut > 3 || whole+cut != 58 {
		t.Errorf("%d calls whole, %d cut, the fold says %d", whole, cut, v.Made[0].Cuts)
	}
	if strings.Contains(v.Made[0].Text, s.entries[len(s.entries)-6].Calls[0].Args) {
		t.Error("the longest call is not among those cut")
	}
}

// The reactive pass folds what it can, and what cannot be is named.
func TestOverflow(t *testing.T) {
	for _, tt := range []struct {
		name string
		grow func(s *session)
		part string
	}{
		{"user messages", func(s *session) {
			for range 8 {
				s.user(strings.Repeat("please ", 100))
			}
		}, "fixed"},
		{"one message", func(s *session) { s.user(strings.Repeat("please ", 1000)) }, "message 1"},
		{"pinned", func(s *session) {
			for range 8 {
				s.step("cat", strings.Repeat("text ", 100))
				s.entries[len(s.entries)-1].Pinned = true
			}
		}, "pinned"},
		{"open turn", func(s *session) {
			turn := history.Entry{Kind: history.Turn, Ref: "001"}
			for i := range 9 {
				turn.Calls = append(turn.Calls, history.Call{ID: fmt.Sprint(i), Name: "read", Args: "{}"})
			}
			s.add(turn)
			for i := range 8 {
				s.add(history.Entry{Kind: history.Result, CallID: fmt.Sprint(i), Output: strings.Repeat("text ", 200)})
			}
		}, "open turn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := session{tb: t, ledger: history.New(count, nil), budget: 1000}
			tt.grow(&s)
			_, err := s.ledger.Compact(s.history())
			var over *history.OverflowError
			if !errors.As(err, &over) || !errors.Is(err, history.ErrOverflow) {
				t.Fatalf("error %v, want an overflow", err)
			}
			if over.Part != tt.part || over.PartTokens <= 0 || over.Tokens <= over.Budget || over.Budget != 1000 {
				t.Errorf("overflow %+v, want part %q", over, tt.part)
			}
		})
	}
}

// However long a session grows, its history fits its budget at every step, with
// every user message in it, and batches stay rare.
func TestLongSession(t *testing.T) {
	const budget = 3000
	s := session{tb: t, ledger: history.New(count, nil), budget: budget}
	s.user("Keep the tests green.")
	batches, levels := 0, map[int]int{}
	for i := range 1500 {
		out := listing(fmt.Sprintf("part_%d", i), 1+i%7)
		if i%9 == 0 {
			s.fail(fmt.Sprintf("make target_%d", i), out+fmt.Sprintf("error: cannot make target_%d\n", i), 2)
		} else {
			s.step(fmt.Sprintf("cat file_%d", i), out)
		}
		v := s.view()
		if v.Tokens > budget {
			t.Fatalf("step %d: %d tokens", i, v.Tokens)
		}
		if len(v.Made) > 0 {
			batches++
		}
		for _, f := range v.Made {
			levels[f.Level]++
		}
		if !strings.Contains(render(v), "Keep the tests green.") {
			t.Fatalf("step %d: the user's message is gone", i)
		}
	}
	if batches > 1500/5 || levels[history.LevelDense] == 0 || levels[history.LevelLines] == 0 {
		t.Errorf("%d batches, folds by level %v", batches, levels)
	}
}

// Dense folds are made of what was recorded of entries, or of the entries, which
// may come from elsewhere: of both the same.
func TestDenseFromOriginals(t *testing.T) {
	opts := &history.Options{FoldTokens: 900, KeepTurns: 1}
	grow := func(s *session) {
		for i := range 24 {
			s.step(fmt.Sprintf("cat file_%d", i), listing(fmt.Sprintf("part_%d", i), 4))
			if i%6 == 5 {
				s.batch()
			}
		}
	}
	whole := session{tb: t, ledger: history.New(count, opts)}
	grow(&whole)
	at := slices.IndexFunc(whole.folds, func(f history.Fold) bool { return f.Level == history.LevelDense })
	if at < 0 {
		t.Fatal("no dense fold was made")
	}
	want := whole.folds[at]

	asked := 0
	h := history.History{Now: true}
	for _, f := range whole.folds {
		if f.Batch < want.Batch {
			h.Folds = append(h.Folds, f)
			h.Entries = whole.entries[f.Spans[len(f.Spans)-1].Last:want.Seen]
		}
	}
	h.Originals = func(first, last uint64) ([]history.Entry, error) {
		asked++
		return whole.entries[first-1 : last], nil
	}
	for _, recorded := range []bool{true, false} {
		if !recorded {
			for i := range h.Folds {
				h.Folds[i].Digest = ""
			}
		}
		v := MustCompact(t, whole.ledger, h)
		if recorded != (asked == 0) {
			t.Fatalf("recorded %v, but the originals were asked for %d times", recorded, asked)
		}
		got := v.Made[slices.IndexFunc(v.Made, func(f history.Fold) bool { return f.Level == history.LevelDense })]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("recorded %v: the fold is another (-want +got):\n%s", recorded, diff)
		}
	}

	broken := errors.New("disk on fire")
	h.Originals = func(uint64, uint64) ([]history.Entry, error) { return nil, broken }
	if _, err := whole.ledger.Compact(h); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the originals", err)
	}
}

func TestCap(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, &history.Options{ResultTokens: 100})}
	s.step("cat", lines(1, 100))
	s.fail("make", lines(101, 200), 1)
	s.step("cat", strings.Repeat("ü", 2000))
	v := s.view()
	for i, ends := range map[int][2]string{1: {"line 1\n", "line 100\n"}, 3: {"line 101\n", "line 200\n"}} {
		got := v.Items[i].Output
		head, tail, ok := strings.Cut(got, " chars omitted. ")
		if !ok || count(got) > 100 || !strings.Contains(head, ends[0]) || !strings.HasSuffix(tail, ends[1]) {
			t.Errorf("item %d is %d tokens:\n%s", i, count(got), got)
		}
		if more := len(head) > len(tail); more != (i == 1) {
			t.Errorf("item %d: of a result the head is longer, of a failure the tail:\n%s", i, got)
		}
	}
	if got := v.Items[5].Output; count(got) > 100 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("one long line:\n%s", got)
	}
}

// The middle that a cut takes out leaves the lines that say what went wrong: of a call that
// failed all of them, of another those that leave no doubt, and those that were left out when
// the call was recorded.
func TestCapKeepsErrors(t *testing.T) {
	const failed = "--- FAIL: TestLock\n    lock_test.go:12: expected 3, got 4\n"
	between := func(middle string) string { return lines(1, 200) + middle + lines(201, 400) }
	for i, tt := range []struct {
		middle, evidence string
		exit             int
		want             string // what stands behind the mark
	}{
		{failed, "", 1, failed + "[...]\n"},
		{"2026-01-02 ERROR disk full\n", "", 0, "2026-01-02 ERROR disk full\n[...]\n"},
		{"return fmt.Errorf(\"cannot read\") // if it failed\n", "", 0, ""},
		{"nothing\n", "error: no rule to make target\nnames: a b", 0, "error: no rule to make target\n[...]\n"},
		{"nothing\n", "[...9 chars omitted. Full data: x; ERROR: run it]", 0, "| [...9 chars omitted. Full data: x; ERROR: run it]\n[...]\n"},
		{strings.Repeat("x", 900) + " ERROR\n", "", 1, ""}, // more than the room allows
	} {
		s := session{tb: t, ledger: history.New(count, &history.Options{ResultTokens: 300})}
		s.fail("make", between(tt.middle), tt.exit)
		s.entries[1].Evidence = tt.evidence
		got := s.view().Items[1].Output
		_, rest, _ := strings.Cut(got, " chars omitted. ")
		_, rest, _ = strings.Cut(rest, "]\n")
		if count(got) > 300 || !strings.HasPrefix(rest, tt.want+"the content ") {
			t.Errorf("%d: %d tokens, behind the mark stands %.120q", i, count(got), rest)
		}
	}
}

// Where a line of a result is cut, no name is: half a path is the path of nothing.
func TestCapLeavesNamesWhole(t *testing.T) {
	const name = "[workspace/outputs/search_012.json]"
	for limit := 100; limit < 140; limit++ {
		s := session{tb: t, ledger: history.New(count, &history.Options{ResultTokens: limit})}
		s.step("cat", strings.Repeat(name+", ", 400))
		got := s.view().Items[1].Output
		if !strings.Contains(got, " chars omitted. ") {
			t.Fatalf("nothing is cut:\n%s", got)
		}
		head, rest, _ := strings.Cut(got, "[...")
		_, tail, _ := strings.Cut(rest, "]\n")
		for _, part := range []string{head, tail} {
			if rest := strings.ReplaceAll(part, strings.Trim(name, "[]"), ""); strings.Trim(rest, "[], \n") != "" {
				t.Errorf("limit %d: %q has a part of a name", limit, part)
			}
		}
	}
}

func TestExtraTokensCount(t *testing.T) {
	s := session{tb: t, ledger: history.New(count, nil)}
	s.user("see")
	without := s.view().Tokens
	s.entries[0].ExtraTokens = 1600
	if got := s.view().Tokens; got != without+1600 {
		t.Errorf("%d tokens, want %d", got, without+1600)
	}
}

// A file that was read is folded to the names in it, however many: any of them may
// be written again long after. Of paths that a search lists two hundred are kept.
func TestFoldsKeepTheNamesOfLongResults(t *testing.T) {
	const lines, most, mostPaths = 700, 800, 200
	var file, paths strings.Builder
	for i := range lines {
		fmt.Fprintf(&file, "%6d\t    value_%d = here.is(\"a line\", of, some, code, that=\"is long enough to be worth a fold\")\n", i+1, i)
		fmt.Fprintf(&paths, "-rw-r--r-- 1 root root %d May  6  2025 src/part/module%d.py\n", i, i)
	}
	s := session{tb: t, ledger: history.New(count, nil)}
	s.step("cat -n src/a.py", file.String())
	s.step("find .", paths.String())
	s.step("make", "ok")
	s.step("make", "ok")
	text := s.batch().Made[0].Text
	names, listed := 0, 0
	for i := range lines {
		if strings.Contains(text, fmt.Sprintf(" value_%d ", i)) {
			names++
		}
		if strings.Contains(text, fmt.Sprintf("src/part/module%d.py", i)) {
			listed++
		}
	}
	if names < lines-1 || names > most || listed != mostPaths {
		t.Errorf("%d of %d names and %d paths are kept, want all and %d:\n%.300s", names, lines, listed, mostPaths, text)
	}
}
