package provider_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
)

// cached simulates the cache of a provider: entries end where marks stood, and a mark
// finds those of the last blocks before it.
type cached struct {
	minimum int
	entries map[uint64]bool
}

// prefixes names the prefixes of all lengths.
func prefixes(blocks []string) []uint64 {
	sums := make([]uint64, len(blocks)+1)
	h := fnv.New64a()
	for i, b := range blocks {
		_, _ = h.Write([]byte(b + "\n")) // never fails
		sums[i+1] = h.Sum64()
	}
	return sums
}

// ask is one request. It returns how many blocks were read, and how many the longest
// entry had that the request begins with.
func (c *cached) ask(blocks []string, marks []provider.Mark) (read, best int) {
	sums := prefixes(blocks)
	for n, sum := range sums {
		if c.entries[sum] {
			best = n
		}
	}
	for _, m := range marks {
		for n := m.Blocks; n > 0 && n > m.Blocks-provider.LookBack; n-- {
			if c.entries[sums[n]] {
				read = max(read, n)
			}
		}
	}
	for _, m := range marks {
		if m.Tokens >= c.minimum {
			c.entries[sums[m.Blocks]] = true
		}
	}
	return read, best
}

// talk is a session whose prompts are planned.
type talk struct {
	tools, stable, session, folds, steps []string
	before                               []string
	marks                                []provider.Mark
	tokens                               int // of each block
}

func (s *talk) blocks() []string {
	var all []string
	for _, part := range [][]string{s.tools, s.stable, s.session, s.folds, s.steps} {
		all = append(all, part...)
	}
	return all
}

func (s *talk) layout(minimum int) provider.Layout {
	edge := func(parts ...[]string) provider.Edge {
		n := 0
		for _, p := range parts {
			n += len(p)
		}
		return provider.Edge{BlockPlace: provider.BlockPlace{Message: n}, Blocks: n, Tokens: n * s.tokens}
	}
	all := s.blocks()
	shared := 0
	for shared < len(all) && shared < len(s.before) && all[shared] == s.before[shared] {
		shared++
	}
	l := provider.Layout{
		Tools: edge(s.tools), Stable: edge(s.tools, s.stable), Session: edge(s.tools, s.stable, s.session),
		History: edge(all), Minimum: minimum, Before: s.marks,
		Shared: provider.Edge{Blocks: shared, Tokens: shared * s.tokens},
	}
	if len(s.folds) > 0 {
		l.Folds = edge(s.tools, s.stable, s.session, s.folds)
	}
	return l
}

// M05: at most four marks, none under the minimum, none in what changes with every
// prompt. Over sessions with 1 to 40 parallel calls in each step, every prompt reads
// the longest entry that there is.
//
// M05
func TestNoLookBackMisses(t *testing.T) {
	prompts, misses, naive := 0, 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		minimum := []int{512, 1024, 2048, 4096}[seed%4]
		s := &talk{tools: words("tool", r.IntN(30)), stable: words("stable", r.IntN(4)), session: words("session", r.IntN(3)), tokens: 50 + r.IntN(400)}
		cache := &cached{minimum: minimum, entries: make(map[uint64]bool)}
		plain := &cached{minimum: minimum, entries: make(map[uint64]bool)}
		for step := range 30 {
			calls := 1 + r.IntN(40)
			if seed < 40 {
				calls = int(seed) + 1 // each number of calls by itself
			}
			s.steps = append(s.steps, words(fmt.Sprint("call", step), calls)...)
			s.steps = append(s.steps, words(fmt.Sprint("result", step), calls)...)
			l := s.layout(minimum)
			marks := provider.Plan(l)
			check(t, l, marks)
			all := s.blocks()
			read, best := cache.ask(append(all, fmt.Sprint("goal", step)), marks)
			if prompts++; read < best {
				misses++
				t.Errorf("seed %d, step %d of %d calls: read %d of %d blocks with %v", seed, step, calls, read, best, marks)
			}
			l.Before = nil
			if read, best := plain.ask(all, provider.Plan(l)); read < best {
				naive++
			}
			s.before, s.marks = all, marks
		}
	}
	t.Logf("%d prompts, %d misses; %d where the place of the last mark is not marked again", prompts, misses, naive)
	if naive == 0 {
		t.Error("the simulated cache never misses: it shows nothing")
	}
}

func check(t *testing.T, l provider.Layout, marks []provider.Mark) {
	t.Helper()
	if len(marks) > provider.MaxMarks {
		t.Fatalf("%d marks", len(marks))
	}
	for i, m := range marks {
		if m.Tokens < l.Minimum {
			t.Errorf("a mark at %d tokens, under %d", m.Tokens, l.Minimum)
		}
		if m.Blocks > l.History.Blocks {
			t.Errorf("a mark at block %d, behind the settled history of %d", m.Blocks, l.History.Blocks)
		}
		if i > 0 && marks[i-1].Blocks >= m.Blocks {
			t.Errorf("marks out of order: %v", marks)
		}
	}
	if last := len(marks) - 1; l.History.Tokens >= l.Minimum && marks[last].Blocks != l.History.Blocks {
		t.Errorf("the settled history of %d blocks has no mark: %v", l.History.Blocks, marks)
	}
}

func words(name string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(name, i)
	}
	return out
}

// When steps are folded, the folds before stay in the cache.
//
// M05
func TestFoldsStayCached(t *testing.T) {
	s := &talk{tools: words("tool", 3), stable: words("stable", 1), tokens: 500}
	cache := &cached{minimum: 1024, entries: make(map[uint64]bool)}
	for batch := range 8 {
		for step := range 12 {
			s.steps = append(s.steps, fmt.Sprint("call", batch, step), fmt.Sprint("result", batch, step))
			marks := provider.Plan(s.layout(1024))
			read, best := cache.ask(s.blocks(), marks)
			if read < best {
				t.Errorf("batch %d, step %d: read %d of %d blocks with %v", batch, step, read, best, marks)
			}
			if step == 0 && batch > 0 && read < 4+batch-1 {
				t.Errorf("batch %d: read %d blocks, and %d are unchanged", batch, read, 4+batch-1)
			}
			s.before, s.marks = s.blocks(), marks
		}
		s.folds, s.steps = append(s.folds, fmt.Sprint("fold", batch)), s.steps[18:]
	}
}

// M05
func TestPlanAtItsLimits(t *testing.T) {
	at := func(blocks int) provider.Edge {
		return provider.Edge{BlockPlace: provider.BlockPlace{Message: blocks}, Blocks: blocks, Tokens: 100 * blocks}
	}
	history := func(blocks int) []provider.Mark {
		return []provider.Mark{{What: provider.MarkHistory, BlockPlace: provider.BlockPlace{Message: blocks}, Blocks: blocks, Tokens: 100 * blocks}}
	}
	full := provider.Layout{Tools: at(10), Stable: at(12), Session: at(14), History: at(50), Minimum: 1000}
	for _, tt := range []struct {
		name string
		edit func(l *provider.Layout)
		want string
	}{
		{"all", func(*provider.Layout) {}, "tools10 stable12 session14 history50"},
		{"tools under the minimum", func(l *provider.Layout) { l.Minimum = 1001 }, "stable12 session14 history50"},
		{"all under the minimum", func(l *provider.Layout) { l.Minimum = 5001 }, ""},
		{"history at the minimum", func(l *provider.Layout) { l.Minimum = 5000 }, "history50"},
		{"nothing for minutes", func(l *provider.Layout) { l.Session = at(12) }, "tools10 stable12 history50"},
		{"no history", func(l *provider.Layout) { l.History = at(14) }, "tools10 stable12 session14"},
		{"19 blocks ago", func(l *provider.Layout) { l.Before, l.Shared = history(31), at(31) }, "tools10 stable12 session14 history50+"},
		{"20 blocks ago", func(l *provider.Layout) { l.Before, l.Shared = history(30), at(30) }, "stable12 session14 history30+ history50"},
		{"21 blocks ago", func(l *provider.Layout) { l.Before, l.Shared = history(29), at(29) }, "stable12 session14 history29+ history50"},
		{"20 blocks ago, changed since", func(l *provider.Layout) { l.Before, l.Shared = history(30), at(29) }, "tools10 stable12 session14 history50"},
		{"folds", func(l *provider.Layout) { l.Folds = at(20) }, "stable12 session14 history20 history50"},
		{"folds, nothing for minutes", func(l *provider.Layout) { l.Session, l.Folds = at(12), at(20) }, "tools10 stable12 history20 history50"},
	} {
		l := full
		tt.edit(&l)
		got := ""
		for _, m := range provider.Plan(l) {
			got += fmt.Sprintf(" %s%d%s", m.What, m.Blocks, map[bool]string{true: "+"}[m.Expected > 0])
		}
		if want := tt.want; got != "" && got[1:] != want || got == "" && want != "" {
			t.Errorf("%s: got%s, want %s", tt.name, got, want)
		}
	}
}
