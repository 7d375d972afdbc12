package lexical_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// shelf is what the tests know of a document.
type shelf struct {
	tags       []string
	facts      lexical.Facts
	expires    int64
	supersedes uint32
}

func (s shelf) document(ordinal int) lexical.Added {
	d := lexical.NewDocument(fmt.Sprint("id", ordinal))
	d.AddBody(slices.Values([]string{"word"}))
	for _, tag := range s.tags {
		d.AddValue(lexical.Tag, tag)
	}
	d.SetFacts(s.facts)
	d.Expire(s.expires)
	return lexical.Added{Encoded: d.Encode(), Supersedes: s.supersedes}
}

// MustShelve adds documents, kills others, and packs unless left in the tail.
func (l *library) MustShelve(tb testing.TB, shelves []shelf, kill []uint32, packed bool) {
	tb.Helper()
	changes := []lexical.Change{{Kill: kill}}
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

func (l *library) MustSelect(tb testing.TB, f lexical.Filter, o lexical.SelectOptions) *lexical.Selection {
	tb.Helper()
	reader, err := l.Open(tb.Context(), l.engine, scope)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := reader.Select(tb.Context(), f, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestSelectSaysWhy(t *testing.T) {
	shelves := []shelf{
		1: {facts: lexical.Facts{Create: 10}},
		2: {facts: lexical.Facts{Create: 20, Tier: 1}},
		3: {facts: lexical.Facts{Create: 30}, expires: 100},
		4: {facts: lexical.Facts{Create: 40}},
		5: {facts: lexical.Facts{Create: 50}, supersedes: 4},
		6: {facts: lexical.Facts{Create: 60, Flags: lexical.FlagArchived | lexical.FlagPinned}},
		7: {facts: lexical.Facts{Create: 70, Flags: lexical.FlagQuarantined | lexical.FlagArchived}},
		8: {facts: lexical.Facts{Create: 80}},
		9: {facts: lexical.Facts{Create: 90, Superseded: 95}, tags: []string{"out"}},
	}
	const (
		allowed, filtered, expired, superseded  = lexical.Allowed, lexical.Filtered, lexical.Expired, lexical.Superseded
		archived, quarantined, dead, everything = lexical.Archived, lexical.Quarantined, lexical.Dead, 9
	)
	out := lexical.Not(lexical.Has(lexical.Tag, "out"))
	for _, tt := range []struct {
		name    string
		filter  lexical.Filter
		options lexical.SelectOptions
		want    []lexical.Reason // by ordinal, from 1
	}{
		{"by default", lexical.Filter{}, lexical.SelectOptions{Now: 99}, []lexical.Reason{allowed, filtered, allowed, superseded, allowed, archived, archived, dead, superseded}},
		{"later", out, lexical.SelectOptions{Now: 100}, []lexical.Reason{allowed, filtered, expired, superseded, allowed, archived, archived, dead, filtered}},
		{"with all", lexical.Filter{}, lexical.SelectOptions{Tiers: 0xf, Superseded: true, Archived: true, Quarantined: true}, []lexical.Reason{allowed, allowed, allowed, allowed, allowed, allowed, allowed, dead, allowed}},
		{"first tier", lexical.Filter{}, lexical.SelectOptions{Tiers: lexical.TierBit(1)}, []lexical.Reason{filtered, allowed, filtered, filtered, filtered, filtered, filtered, dead, filtered}},
		{"with the archive", lexical.Filter{}, lexical.SelectOptions{Archived: true}, []lexical.Reason{allowed, filtered, allowed, superseded, allowed, allowed, quarantined, dead, superseded}},
		{"as of before the change", lexical.Filter{}, lexical.SelectOptions{AsOf: 49}, []lexical.Reason{allowed, filtered, allowed, allowed, filtered, filtered, filtered, dead, filtered}},
		{"as of between", lexical.Filter{}, lexical.SelectOptions{AsOf: 94}, []lexical.Reason{allowed, filtered, allowed, superseded, allowed, archived, archived, dead, allowed}},
	} {
		for _, packed := range []bool{false, true} {
			l := MustLibrary(t)
			l.MustShelve(t, shelves[1:], nil, packed)
			l.MustShelve(t, nil, []uint32{8}, packed)
			s := l.MustSelect(t, tt.filter, tt.options)
			var why []lexical.Reason
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
	s := MustLibrary(t).MustSelect(t, lexical.Not(lexical.Or(lexical.Has(lexical.Tag, "x"), lexical.Only(1))), lexical.SelectOptions{})
	if s.Count() != 0 || s.Has(1) || s.Why(1) != lexical.Dead || len(slices.Collect(s.All())) != 0 {
		t.Errorf("%d documents", s.Count())
	}
}

// forest makes random filters and says what they let through.
type forest struct {
	*rand.Rand
	shelves []shelf
	asked   []string // ids that a verifier was asked about
}

func (f *forest) tree(depth int) (lexical.Filter, func(ordinal int) bool) {
	if depth > 0 && f.IntN(3) > 0 {
		a, inA := f.tree(depth - 1)
		b, inB := f.tree(depth - 1)
		switch f.IntN(4) {
		case 0:
			return lexical.Not(a), func(o int) bool { return !inA(o) }
		case 1:
			return lexical.Or(a, b), func(o int) bool { return inA(o) || inB(o) }
		case 2:
			return lexical.And(a, b), func(o int) bool { return inA(o) && inB(o) }
		}
		even, isEven := f.even()
		return lexical.Verified(a, even), func(o int) bool { return inA(o) && isEven(o) }
	}
	return f.leaf()
}

// even is a verifier that confirms even ordinals.
func (f *forest) even() (lexical.Verifier, func(int) bool) {
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

func (f *forest) leaf() (lexical.Filter, func(int) bool) {
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
		return lexical.Filter{}, func(int) bool { return true }
	case 1:
		return lexical.Has(lexical.Tag, tag), tags(func(t string) bool { return t == tag })
	case 2:
		return lexical.Matching(lexical.Tag, "t", func(rest string) lexical.Match { return map[bool]lexical.Match{true: lexical.Yes}[rest < tag[1:]] }, nil),
			tags(func(t string) bool { return t < tag })
	case 3:
		verify, isEven := f.even()
		return lexical.Matching(lexical.Tag, tag, func(string) lexical.Match { return lexical.Unsure }, verify),
			func(o int) bool { return slices.Contains(f.shelves[o-1].tags, tag) && isEven(o) }
	case 4:
		event := between(func(s shelf) int64 { return s.facts.Event })
		return lexical.Between(lexical.EventTime, from, to), func(o int) bool { return f.shelves[o-1].facts.Event != 0 && event(o) }
	case 5:
		return lexical.Between(lexical.Tier, from, to), between(func(s shelf) int64 { return int64(s.facts.Tier) })
	case 6:
		rank := lexical.ImportanceRank(float64(from) / 5)
		return lexical.Between(lexical.Importance, rank, math.MaxInt64), func(o int) bool { return f.shelves[o-1].facts.Importance >= float64(from)/5 }
	}
	return lexical.Only(uint32(from), 5, 1000), func(o int) bool { return o == int(from) || o == 5 }
}

func TestSelectAgreesWithPlainReading(t *testing.T) {
	seed := rand.Uint64()
	f := &forest{Rand: rand.New(rand.NewPCG(seed, 2))}
	for range 150 {
		s := shelf{facts: lexical.Facts{Create: 1, Event: f.Int64N(5), Tier: uint8(1 + f.IntN(4)), Importance: float64(f.IntN(6)) / 5}}
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
			s := l.MustSelect(t, filter, lexical.SelectOptions{Tiers: 0xf})
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
	fails := lexical.Verified(lexical.Filter{}, func(context.Context, []string) ([]bool, error) { return nil, errInjected })
	for _, f := range []lexical.Filter{fails, lexical.And(fails), lexical.Or(lexical.Only(), fails), lexical.Not(fails), lexical.Verified(fails, nil)} {
		if _, err := reader.Select(t.Context(), f, lexical.SelectOptions{}); err != errInjected { //nolint:errorlint // it must come through as it is
			t.Errorf("got %v", err)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	l := MustLibrary(b)
	for i := range 100 {
		var shelves []shelf
		for j := range 1000 {
			shelves = append(shelves, shelf{tags: []string{fmt.Sprint("t", j%50), fmt.Sprint("n", i*1000+j)}, facts: lexical.Facts{Create: int64(i*1000 + j + 1)}})
		}
		l.MustShelve(b, shelves, nil, i%10 == 9)
	}
	l.MustMerge(b)
	for name, f := range map[string]lexical.Filter{
		"everything": {},
		"tag":        lexical.Has(lexical.Tag, "t7"),
		"time":       lexical.Between(lexical.CreateTime, 5000, 9000),
		"range over 100,000 values": lexical.Matching(lexical.Tag, "n", func(rest string) lexical.Match {
			return map[bool]lexical.Match{true: lexical.Yes}[rest < "5"]
		}, nil),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l.MustSelect(b, f, lexical.SelectOptions{})
			}
		})
	}
}
