package selection_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// shelf is what the tests know of a document.
type shelf struct {
	tags       []string
	facts      segment.Facts
	expires    int64
	supersedes uint32
}

func (s shelf) document(ordinal int) lexical.Added {
	d := segment.NewDocument(fmt.Sprint("id", ordinal))
	d.AddBody(slices.Values([]string{"word"}))
	for _, tag := range s.tags {
		d.AddValue(segment.Tag, tag)
	}
	d.SetFacts(s.facts)
	d.Expire(s.expires)
	return lexical.Added{Encoded: d.Encode(), Supersedes: s.supersedes}
}

// MustShelve adds documents, kills others, and packs unless left in the tail.
func (l *library) MustShelve(tb testing.TB, shelves []shelf, kill []uint32, packed bool) {
	tb.Helper()
	changes := []lexical.Change{{Delete: kill}}
	for i, s := range shelves {
		changes = append(changes, lexical.Change{Add: []lexical.Added{s.document(i + 1)}})
	}
	err := l.writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for _, c := range changes {
			if _, _, err := l.Apply(ctx, tx, scope, c); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		tb.Fatal(err)
	}
	if packed {
		l.MustPack(tb)
	}
}

func (l *library) MustSelect(tb testing.TB, f selection.Filter, o selection.Options) *selection.Selection {
	tb.Helper()
	reader, err := l.Open(tb.Context(), l.engine, scope)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := selection.Select(tb.Context(), reader, f, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestSelectSaysWhy(t *testing.T) {
	shelves := []shelf{
		1: {facts: segment.Facts{Create: 10}},
		2: {facts: segment.Facts{Create: 20, Tier: 1}},
		3: {facts: segment.Facts{Create: 30}, expires: 100},
		4: {facts: segment.Facts{Create: 40}},
		5: {facts: segment.Facts{Create: 50}, supersedes: 4},
		6: {facts: segment.Facts{Create: 60, Flags: segment.FlagArchived | segment.FlagPinned}},
		7: {facts: segment.Facts{Create: 70, Flags: segment.FlagQuarantined | segment.FlagArchived}},
		8: {facts: segment.Facts{Create: 80}},
		9: {facts: segment.Facts{Create: 90, Superseded: 95}, tags: []string{"out"}},
	}
	const (
		allowed, filtered, expired, superseded  = selection.Allowed, selection.Filtered, selection.Expired, selection.Superseded
		archived, quarantined, dead, everything = selection.Archived, selection.Quarantined, selection.Deleted, 9
	)
	out := selection.Not(selection.Has(segment.Tag, "out"))
	for _, tt := range []struct {
		name    string
		filter  selection.Filter
		options selection.Options
		want    []selection.Reason // by ordinal, from 1
	}{
		{"by default", selection.Filter{}, selection.Options{Now: 99}, []selection.Reason{allowed, filtered, allowed, superseded, allowed, archived, archived, dead, superseded}},
		{"later", out, selection.Options{Now: 100}, []selection.Reason{allowed, filtered, expired, superseded, allowed, archived, archived, dead, filtered}},
		{"with all", selection.Filter{}, selection.Options{Tiers: 0xf, Superseded: true, Archived: true, Quarantined: true}, []selection.Reason{allowed, allowed, allowed, allowed, allowed, allowed, allowed, dead, allowed}},
		{"first tier", selection.Filter{}, selection.Options{Tiers: selection.TierBit(1)}, []selection.Reason{filtered, allowed, filtered, filtered, filtered, filtered, filtered, dead, filtered}},
		{"with the archive", selection.Filter{}, selection.Options{Archived: true}, []selection.Reason{allowed, filtered, allowed, superseded, allowed, allowed, quarantined, dead, superseded}},
	} {
		for _, packed := range []bool{false, true} {
			l := MustLibrary(t)
			l.MustShelve(t, shelves[1:], nil, packed)
			l.MustShelve(t, nil, []uint32{8}, packed)
			s := l.MustSelect(t, tt.filter, tt.options)
			var why []selection.Reason
			var may []uint32
			for ordinal := uint32(1); ordinal <= everything; ordinal++ {
				why = append(why, s.Why(ordinal))
				if s.Has(ordinal) {
					may = append(may, ordinal)
				}
			}
			if diff := cmp.Diff(tt.want, why); diff != "" {
				t.Errorf("%s, packed=%v: (-want +got):\n%s", tt.name, packed, diff)
			}
			if got := slices.Collect(s.All()); !slices.Equal(got, may) || s.Count() != len(may) {
				t.Errorf("%s: all %v, count %d, has %v", tt.name, got, s.Count(), may)
			}
			if s.Why(0) != dead || s.Why(10) != dead || s.Has(10) || s.Has(math.MaxUint32) {
				t.Errorf("%s: documents that are not there", tt.name)
			}
		}
	}
}

func TestSelectInAnEmptyScope(t *testing.T) {
	s := MustLibrary(t).MustSelect(t, selection.Not(selection.Or(selection.Has(segment.Tag, "x"), selection.Only(1))), selection.Options{})
	if s.Count() != 0 || s.Has(1) || s.Why(1) != selection.Deleted || len(slices.Collect(s.All())) != 0 {
		t.Errorf("%d documents", s.Count())
	}
}

// forest makes random filters and says what they let through.
type forest struct {
	*rand.Rand
	shelves []shelf
	asked   []string // ids that a verifier was asked about
}

func (f *forest) tree(depth int) (selection.Filter, func(ordinal int) bool) {
	if depth > 0 && f.IntN(3) > 0 {
		a, inA := f.tree(depth - 1)
		b, inB := f.tree(depth - 1)
		switch f.IntN(4) {
		case 0:
			return selection.Not(a), func(o int) bool { return !inA(o) }
		case 1:
			return selection.Or(a, b), func(o int) bool { return inA(o) || inB(o) }
		case 2:
			return selection.And(a, b), func(o int) bool { return inA(o) && inB(o) }
		}
		even, isEven := f.even()
		return selection.Verified(a, even), func(o int) bool { return inA(o) && isEven(o) }
	}
	return f.leaf()
}

// even is a verifier that confirms even ordinals.
func (f *forest) even() (selection.Verifier, func(int) bool) {
	isEven := func(o int) bool { return o%2 == 0 }
	return func(_ context.Context, ids []string) ([]bool, error) {
		f.asked = append(f.asked, ids...)
		var confirmed []bool
		for _, id := range ids {
			confirmed = append(confirmed, id == "" || strings.ContainsAny(id[len(id)-1:], "02468"))
		}
		return confirmed, nil
	}, isEven
}

func (f *forest) leaf() (selection.Filter, func(int) bool) {
	tag := fmt.Sprint("t", f.IntN(6))
	tags := func(such func(string) bool) func(int) bool {
		return func(o int) bool { return slices.ContainsFunc(f.shelves[o-1].tags, such) }
	}
	from := f.Int64N(6)
	to := from + f.Int64N(3)
	between := func(n func(shelf) int64) func(int) bool {
		return func(o int) bool { x := n(f.shelves[o-1]); return from <= x && x <= to }
	}
	switch f.IntN(8) {
	case 0:
		return selection.Filter{}, func(int) bool { return true }
	case 1:
		return selection.Has(segment.Tag, tag), tags(func(t string) bool { return t == tag })
	case 2:
		return selection.Matching(segment.Tag, "t", func(rest string) selection.Match {
				return map[bool]selection.Match{true: selection.Yes}[rest < tag[1:]]
			}, nil),
			tags(func(t string) bool { return t < tag })
	case 3:
		verify, isEven := f.even()
		return selection.Matching(segment.Tag, tag, func(string) selection.Match { return selection.Unsure }, verify),
			func(o int) bool { return slices.Contains(f.shelves[o-1].tags, tag) && isEven(o) }
	case 4:
		event := between(func(s shelf) int64 { return s.facts.Event })
		return selection.Between(selection.EventTime, from, to), func(o int) bool { return f.shelves[o-1].facts.Event != 0 && event(o) }
	case 5:
		return selection.Between(selection.Tier, from, to), between(func(s shelf) int64 { return int64(s.facts.Tier) })
	case 6:
		rank := selection.ImportanceRank(float64(from) / 5)
		return selection.Between(selection.Importance, rank, math.MaxInt64), func(o int) bool { return f.shelves[o-1].facts.Importance >= float64(from)/5 }
	}
	return selection.Only(uint32(from), 5, 1000), func(o int) bool { return o == int(from) || o == 5 }
}

func TestSelectAgreesWithPlainReading(t *testing.T) {
	seed := chance.Seed(t)
	f := &forest{Rand: rand.New(rand.NewPCG(seed, 2))}
	for range 150 {
		s := shelf{facts: segment.Facts{Create: 1, Event: f.Int64N(5), Tier: uint8(1 + f.IntN(4)), Importance: float64(f.IntN(6)) / 5}}
		for range f.IntN(4) {
			s.tags = append(s.tags, fmt.Sprint("t", f.IntN(6)))
		}
		f.shelves = append(f.shelves, s)
	}
	dead := []uint32{2, 3, 64, 127, 128, 150}
	for _, packed := range []bool{false, true} {
		l := MustLibrary(t)
		l.MustShelve(t, f.shelves, nil, packed)
		l.MustShelve(t, nil, dead, false)
		for range 400 {
			filter, in := f.tree(f.IntN(4))
			s := l.MustSelect(t, filter, selection.Options{Tiers: 0xf})
			for o := 1; o <= len(f.shelves); o++ {
				if want := in(o) && !slices.Contains(dead, uint32(o)); s.Has(uint32(o)) != want {
					t.Fatalf("seed %d, packed=%v: document %d: %v, want %v", seed, packed, o, s.Has(uint32(o)), want)
				}
			}
		}
	}
	for _, o := range dead {
		if slices.Contains(f.asked, fmt.Sprint("id", o)) {
			t.Errorf("a verifier was asked about dead document %d", o)
		}
	}
}

func TestSelectPassesErrorsOn(t *testing.T) {
	l := MustLibrary(t)
	l.MustShelve(t, []shelf{{tags: []string{"a"}}}, nil, false)
	reader, err := l.Open(t.Context(), l.engine, scope)
	if err != nil {
		t.Fatal(err)
	}
	fails := selection.Verified(selection.Filter{}, func(context.Context, []string) ([]bool, error) { return nil, errInjected })
	for _, f := range []selection.Filter{fails, selection.And(fails), selection.Or(selection.Only(), fails), selection.Not(fails), selection.Verified(fails, nil)} {
		if _, err := selection.Select(t.Context(), reader, f, selection.Options{}); err != errInjected { //nolint:errorlint // it must come through as it is
			t.Errorf("got %v", err)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	l := MustLibrary(b)
	for i := range 100 {
		var shelves []shelf
		for j := range 1000 {
			shelves = append(shelves, shelf{tags: []string{fmt.Sprint("t", j%50), fmt.Sprint("n", i*1000+j)}, facts: segment.Facts{Create: int64(i*1000 + j + 1)}})
		}
		l.MustShelve(b, shelves, nil, i%10 == 9)
	}
	l.MustMerge(b)
	for name, f := range map[string]selection.Filter{
		"everything": {},
		"tag":        selection.Has(segment.Tag, "t7"),
		"time":       selection.Between(selection.CreateTime, 5000, 9000),
		"range over 100,000 values": selection.Matching(segment.Tag, "n", func(rest string) selection.Match {
			return map[bool]selection.Match{true: selection.Yes}[rest < "5"]
		}, nil),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l.MustSelect(b, f, selection.Options{})
			}
		})
	}
}
