package history_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// count is a counter that is quick and easy to reckon with: four bytes are a
// token.
func count(text string) int { return (len(text) + 3) / 4 }

// MustCompact compacts a history that has to fit.
func MustCompact(tb testing.TB, l *history.Ledger, h history.History) history.View {
	tb.Helper()
	v, err := l.Compact(h)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// session grows a log and keeps the folds that are made of it.
type session struct {
	tb      testing.TB
	ledger  *history.Ledger
	entries []history.Entry
	folds   []history.Fold
	budget  int
	steps   int
}

func (s *session) add(entries ...history.Entry) {
	for _, e := range entries {
		if n := len(s.entries); n > 0 {
			e.Position = s.entries[n-1].Position + 1
		} else {
			e.Position = 1
		}
		s.entries = append(s.entries, e)
	}
}

// user adds a message that stays.
func (s *session) user(text string) {
	s.add(history.Entry{Kind: history.Fixed, Text: text, Ref: fmt.Sprintf("message %d", len(s.entries)+1)})
}

// step adds a turn with one call and its result.
func (s *session) step(command, output string) {
	s.steps++
	ref, id := fmt.Sprintf("%03d", s.steps), fmt.Sprintf("call_%d", s.steps)
	s.add(
		history.Entry{Kind: history.Turn, Ref: ref, Calls: []history.Call{{ID: id, Name: "bash", Args: fmt.Sprintf(`{"command": %q}`, command)}}},
		history.Entry{Kind: history.Result, Ref: ref, CallID: id, Output: output},
	)
}

// fail adds a step that failed.
func (s *session) fail(command, output string, exit int) {
	s.step(command, output)
	s.entries[len(s.entries)-1].Exit = &exit
}

func (s *session) history() history.History {
	return history.History{Entries: s.entries, Folds: s.folds, Budget: s.budget}
}

// view compacts and keeps the folds.
func (s *session) view() history.View {
	s.tb.Helper()
	v := MustCompact(s.tb, s.ledger, s.history())
	s.folds = append(s.folds, v.Made...)
	return v
}

// batch folds whatever it costs.
func (s *session) batch() history.View {
	s.tb.Helper()
	h := s.history()
	h.Now = true
	v := MustCompact(s.tb, s.ledger, h)
	s.folds = append(s.folds, v.Made...)
	return v
}

// render is a view as text, an item a line or more, with what each one is.
func render(v history.View) string {
	var b strings.Builder
	for _, it := range v.Items {
		if it.Fold != nil {
			fmt.Fprintf(&b, "== fold %d\n%s\n", it.Fold.Batch, it.Fold.Text)
			continue
		}
		fmt.Fprintf(&b, "== %d\n", it.Entry.Position)
		for _, text := range []string{it.Entry.Text, callsText(it.Entry.Calls), it.Output} {
			if text != "" {
				b.WriteString(text + "\n")
			}
		}
	}
	return b.String()
}

func callsText(calls []history.Call) string {
	texts := make([]string, len(calls))
	for i, c := range calls {
		texts[i] = c.ID + " " + c.Name + " " + c.Args
	}
	return strings.Join(texts, "\n")
}

// listing is an output of n lines that name things.
func listing(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "src/%s/module_%d.py: def handle_%s_%d(request) returns a value nobody needs to know\n", name, i, name, i)
	}
	return b.String()
}

// random grows random logs: parallel calls, repeated ids, steps in one entry or
// two, observations in user messages, pins.
type random struct {
	*session
	r *rand.Rand
}

func newRandom(tb testing.TB, seed uint64, opts *history.Options) *random {
	return &random{&session{tb: tb, ledger: history.New(count, opts)}, rand.New(rand.NewPCG(seed, 1))}
}

func (g *random) text(lines int) string {
	var b strings.Builder
	if from := g.r.IntN(60); g.r.IntN(2) == 0 {
		// A part of a file that other outputs show parts of, too.
		for i := range 1 + g.r.IntN(lines) {
			fmt.Fprintf(&b, "func Handle%d(request Request%d) error {\n", from+i, from+i)
		}
		return b.String()
	}
	for range 1 + g.r.IntN(lines) {
		fmt.Fprintf(&b, "  line %d of pkg/file_%d.go: value_%d\n", g.r.IntN(12), g.r.IntN(6), g.r.IntN(40))
	}
	return b.String()
}

// grow adds one event of a random sort.
func (g *random) grow() {
	switch g.r.IntN(10) {
	case 0:
		g.user("user " + g.text(3))
	case 1:
		g.add(history.Entry{Kind: history.Turn, Ref: g.ref(), Text: "said " + g.text(3)})
	case 2:
		g.native()
	case 3:
		g.observed()
	default:
		g.turn()
	}
	if g.r.IntN(25) == 0 {
		g.entries[len(g.entries)-1].Pinned = true
	}
}

func (g *random) ref() string {
	g.steps++
	return fmt.Sprintf("%03d", g.steps)
}

// turn adds one to four parallel calls with their results in any order.
func (g *random) turn() {
	turn := history.Entry{Kind: history.Turn, Ref: g.ref(), Text: "thought"}
	n := 1 + g.r.IntN(4)
	results := make([]history.Entry, n)
	for i := range n {
		id := fmt.Sprintf("call_%d", g.r.IntN(3)*10+i)
		turn.Calls = append(turn.Calls, history.Call{ID: id, Name: "bash", Args: `{"command": "` + strings.Repeat("x", g.r.IntN(200)) + `"}`})
		results[i] = history.Entry{Kind: history.Result, Ref: turn.Ref + string(rune('a'+i)), CallID: id, Output: g.text(40), Failed: g.r.IntN(6) == 0}
	}
	g.r.Shuffle(n, func(i, j int) { results[i], results[j] = results[j], results[i] })
	g.add(turn)
	g.add(results...)
}

// native adds the steps of one turn, which have call and result in one entry.
func (g *random) native() {
	turn := fmt.Sprintf("turn_%d", g.steps)
	for range 1 + g.r.IntN(3) {
		g.add(history.Entry{
			Kind: history.Step, Ref: g.ref(), TurnID: turn, Output: g.text(30),
			Calls: []history.Call{{Name: "fs:read_file", Args: `{"path":"a/b.go"}`}},
		})
	}
}

// observed adds a turn without native calls and what it observed.
func (g *random) observed() {
	ref := g.ref()
	g.add(
		history.Entry{Kind: history.Turn, Ref: ref, Text: "I look.\n```\nls -la dir/" + ref + "\n```"},
		history.Entry{Kind: history.Result, Ref: ref, Output: g.text(30)},
	)
}

// withoutBatch are the folds but for those of one batch: what stands there once
// it was undone.
func withoutBatch(folds []history.Fold, batch uint64) []history.Fold {
	var kept []history.Fold
	for _, f := range folds {
		if f.Batch != batch {
			kept = append(kept, f)
		}
	}
	return kept
}

// named is a preset that there is.
func named(name string) history.Preset {
	p, _ := history.Named(name)
	return p
}
