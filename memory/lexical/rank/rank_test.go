package rank

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

func TestBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		all := make([]candidate, rng.IntN(200))
		b := newTopK(1 + rng.IntN(20))
		for i := range all {
			c := ranked{rank: float32(rng.IntN(10)), part: uint32(rng.IntN(2)), slot: uint32(i), created: rng.Int64N(3)}
			all[i] = candidate{rank: c.rank, part: int(c.part), slot: c.slot, created: c.created}
			b.offer(c)
		}
		slices.SortFunc(all, func(c, d candidate) int { return d.compare(c) })
		want := all[:min(len(all), b.limit)]
		if got := b.sorted(); !slices.Equal(want, got) {
			t.Fatalf("limit %d of %d: got %v, want %v", b.limit, len(all), got, want)
		}
	}
}

func TestBlocksComeBestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 200 {
		h := make(blockHeap, rng.IntN(50))
		for i := range h {
			h[i] = newBlock(rng.Float32(), rng.Uint32())
		}
		want := slices.SortedFunc(slices.Values(h), func(a, b block) int { return cmp.Compare(b, a) })
		var got []block
		for h = h.init(); len(h) > 0; h = h.pop() {
			got = append(got, h[0])
		}
		if !slices.Equal(want, got) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestSpanWithoutYear(t *testing.T) {
	const day = 24 * 60 * 60 * 1e6
	at := func(days int64) int64 { return days * day }
	may := Span{From: at(20574), To: at(20605)} // May 2026
	for _, tt := range []struct {
		what string
		last int64
		want Span
	}{
		{"later that year", at(20600), may},
		{"on its first day", at(20574), may},
		{"the year before", at(20573), Span{From: at(20209), To: at(20240)}},
		{"years ago", at(19800), Span{From: at(19478 + 0), To: at(19509)}}, // March 2024: May 2023
	} {
		if got := may.before(tt.last); got != tt.want {
			t.Errorf("%s: from day %d to %d, want %d to %d", tt.what, got.From/int64(day), got.To/int64(day), tt.want.From/int64(day), tt.want.To/int64(day))
		}
	}
}

func TestCloseness(t *testing.T) {
	const day = int64(24 * 60 * 60 * 1e6)
	r := ranking{spans: []Span{{From: 10 * day, To: 11 * day}}}
	for event, want := range map[int64]float32{
		0: 0, 9 * day: 0, 10 * day: 1, 11*day - 1: 1, 11 * day: 1, 16 * day: 0.5, 21 * day: 0, 40 * day: 0,
	} {
		if got := r.closeness(event); got != want {
			t.Errorf("day %v: %v, want %v", float64(event)/float64(day), got, want)
		}
	}
}

func TestNearness(t *testing.T) {
	cosines := func(values ...float64) []*rankedPart {
		p := &rankedPart{}
		for i, v := range values {
			p.Vectors = append(p.Vectors, VectorHit{Ordinal: uint32(i + 1), Cosine: v})
		}
		return []*rankedPart{p}
	}
	word := Query{Words: []QueryWord{{Text: "a", Count: 1}}, Near: 0.15}
	crowd := []float64{0.81, 0.8, 0.8, 0.79, 0.79, 0.78, 0.78, 0.77, 0.77, 0.76, 0.75}
	for _, tt := range []struct {
		what       string
		cosines    []float64
		least, top float64 // of how sure it is
	}{
		{"nothing", nil, 0, 0},
		{"all far", []float64{-0.5, -0.2}, 0, 0},
		{"a crowd", crowd, 0, 0.05},
		{"one that stands out", append([]float64{0.99}, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2), 0.9, 1},
		{"a few near ones alone", []float64{0.95, 0.9}, 0.9, 1},
		{"a few far ones alone", []float64{0.2, 0.1, -0.1}, 0.01, 0.2},
	} {
		r := ranking{query: word, parts: cosines(tt.cosines...)}
		n := r.nearness()
		if n.sure < tt.least || n.sure > tt.top {
			t.Errorf("%s: sure %v, want %v to %v", tt.what, n.sure, tt.least, tt.top)
		}
		slices.SortFunc(tt.cosines, cmp.Compare)
		last := float32(0)
		for _, c := range tt.cosines {
			if s := n.signal(c); s < last {
				t.Errorf("%s: signal %v of cosine %v after %v", tt.what, s, c, last)
			} else {
				last = s
			}
		}
	}
}

// A name is that of an author as long as a document of that author lives.
func TestNamesOfDeletedAuthors(t *testing.T) {
	b := frame.NewBuilder()
	ann, bob := segment.Row{Author: "ann", Create: 1}, segment.Row{Author: "bob", Create: 1}
	first := b.Extend(2, []frame.NumberedRow{{Ordinal: 1, Row: ann}, {Ordinal: 2, Row: bob}}, nil, 0)
	if names := frame.Derived(first, deriveConversation).names; len(names) != 2 {
		t.Errorf("names %v", names)
	}
	for name, f := range map[string]*frame.Frame{
		"warm": b.Extend(2, nil, []uint32{1}, 1),
		"cold": frame.NewBuilder().Extend(2, []frame.NumberedRow{{Ordinal: 2, Row: bob}}, nil, 1),
	} {
		if names := frame.Derived(f, deriveConversation).names; len(names) != 1 || names["bob"] == 0 {
			t.Errorf("%s: names %v", name, names)
		}
	}
}

// Vectors that rank documents as the words do are believed, and so is what words say nothing
// about; vectors that have nothing to do with sure words are not.
func TestBelief(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ranked := func(documents int, cosine func(byWords float64) float64) *fusion {
		f := &fusion{ranking: &ranking{vectors: nearness{few: max(0, 1-float64(documents)/fiftieth)}}}
		for i := range documents {
			words := max(0, rng.NormFloat64())
			f.best, f.found = append(f.best, candidate{byWords: float32(words), cosine: cosine(words)}), append(f.found, i)
		}
		return f
	}
	for _, documents := range []int{25, 200} {
		var agreeing, chance, unsure float64
		for range 100 {
			agreeing += ranked(documents, func(words float64) float64 { return 0.3 + 0.1*words + 0.1*rng.NormFloat64() }).believe(1) / 100
			f := ranked(documents, func(float64) float64 { return 0.05 * rng.NormFloat64() })
			chance, unsure = chance+f.believe(1)/100, unsure+f.believe(0)/100
		}
		if agreeing < 0.8 || chance > 0.2 || unsure < 0.999 {
			t.Errorf("of %d documents: vectors that agree are believed %.2f, such of chance %.2f, those beside no words %.2f", documents, agreeing, chance, unsure)
		}
	}
	for what, f := range map[string]*fusion{
		"nothing":             ranked(0, nil),
		"one document":        ranked(1, func(float64) float64 { return 0.5 }),
		"equally near":        ranked(9, func(float64) float64 { return 0.1 }),
		"equally good words":  {best: []candidate{{byWords: 0.7, cosine: 0.2}, {byWords: 0.7, cosine: 0.1}, {byWords: 0.7, cosine: 0.3}}, found: []int{0, 1, 2}},
		"all words in excess": {best: []candidate{{byWords: 3, cosine: 0.2}, {byWords: 2, cosine: 0.1}}, found: []int{0, 1}},
	} {
		if f.ranking == nil {
			f.ranking = &ranking{}
		}
		if got := f.believe(1); got != 1 {
			t.Errorf("%s: believed %v, want 1", what, got)
		}
	}
}
