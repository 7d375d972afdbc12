package lexical

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// A sieve finds the slots of what it was given, and of nothing else.
func TestSieve(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, last := range []uint32{1, 63, 64, 1023, 1024, 1025, 5000, 70_000} {
		for _, part := range []int{1, 2, 64, 3000} {
			var ordinals []uint32
			var rows []numberedRow
			for o := uint32(1); o <= last; o++ {
				if rng.IntN(part) == 0 {
					ordinals, rows = append(ordinals, o), append(rows, numberedRow{ordinal: o})
				}
			}
			f := &frame{sieve: newSieve(rows, last), last: last + 10}
			slot := uint32(0)
			for o := range last + 11 {
				word := f.sieve.word(o/64*64)&(1<<(o%64)) != 0
				switch {
				case o > last || len(ordinals) > 0 && ordinals[0] == o:
					if o <= last {
						ordinals = ordinals[1:]
					}
					if f.slotsBefore(o) != slot {
						t.Fatalf("%d slots before %d, want %d", f.slotsBefore(o), o, slot)
					}
					slot++
					if f.slot(o) != slot || f.ordinal(slot) != o || !word {
						t.Fatalf("ordinal %d of %d has slot %d, slot %d is of %d, %v", o, last, f.slot(o), slot, f.ordinal(slot), word)
					}
				case f.slot(o) != 0 || word:
					t.Fatalf("ordinal %d has slot %d, %v", o, f.slot(o), word)
				}
			}
			if f.slots() != slot || f.slot(last+11) != 0 || f.ordinal(0) != 0 {
				t.Errorf("%d slots, want %d", f.slots(), slot)
			}
		}
	}
}

// indexBytes are the bytes of the keys and values of the model's scope.
func (g *gambler) indexBytes() (keys, bytes int) {
	g.tb.Helper()
	for pair, err := range g.engine.Scan(g.tb.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			g.tb.Fatal(err)
		}
		keys++
		bytes += len(pair.Key) + len(pair.Value)
	}
	return keys, bytes
}

// churnMany adds documents, thousand by thousand, of which one in each so many
// stays, and packs and merges.
func (g *gambler) churnMany(documents, each int) {
	g.tb.Helper()
	g.index.mergeCommitBytes = mergeCommitBytes
	d := NewDocument("id")
	d.AddBody(g.words(8))
	d.SetFacts(Facts{Session: "churn", Author: "Ann", Create: 1})
	encoded := d.Encode()
	const batch = 1000
	for last := uint32(0); int(last) < documents; last += batch {
		c := Change{}
		for i := range uint32(batch) {
			c.Add = append(c.Add, Added{Encoded: encoded})
			if o := last + i - batch + 1; last > 0 && o%uint32(each) != 0 {
				c.Kill = append(c.Kill, o)
			}
		}
		err := g.writer.Do(g.tb.Context(), kv.Request{Refs: []kv.Ref{Ref(modelScope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := g.index.Apply(ctx, tx, modelScope, c)
			return err
		}})
		if err != nil {
			g.tb.Fatal(err)
		}
		if _, err := g.index.Open(g.tb.Context(), g.engine, modelScope); err != nil {
			g.tb.Fatal(err)
		}
		if last%4000 == 0 {
			g.settle()
		}
	}
	g.settle()
}

func (g *gambler) settle() {
	g.tb.Helper()
	for more := true; more; {
		s, _, err := g.index.Pack(g.tb.Context(), g.engine, g.writer, modelScope)
		if err != nil {
			g.tb.Fatal(err)
		}
		if more, err = g.index.Merge(g.tb.Context(), g.engine, g.writer, modelScope); err != nil {
			g.tb.Fatal(err)
		}
		more = more || s.Tail() > 0
	}
}

// Of many dead documents next to nothing is left, whoever lives between them.
func TestManyDead(t *testing.T) {
	for _, each := range []int{100_000, 1000, 100} {
		documents := max(each, 20_000)
		t.Run(fmt.Sprint("one in ", each), func(t *testing.T) {
			g := mustGambler(t, rand.New(rand.NewPCG(7, 8)))
			g.churnMany(documents, each)
			living := 1000 + documents/each // the last thousand, and those that stay
			keys, bytes := g.indexBytes()
			if keys > 3*living || bytes > 400*living+documents/4 {
				t.Errorf("%d living take %d keys of %d bytes", living, keys, bytes)
			}
			for name, x := range map[string]*Index{"warm": g.index, "cold": New(nil)} {
				r, err := x.Open(t.Context(), g.engine, modelScope)
				if err != nil {
					t.Fatal(err)
				}
				if s := r.Statistics(); int(s.Documents) > living || int(s.Dead+s.Documents) != documents {
					t.Fatalf("%+v", s)
				}
				f := r.frame
				if most := 2*living + looseSlots; int(f.slots()) > most || cap(f.body) > 2*most || f.sieve.size() > 300*living+documents/50 {
					t.Errorf("%s: %d living have %d slots, room for %d and a sieve of %d bytes", name, living, f.slots(), cap(f.body), f.sieve.size())
				}
			}
		})
	}
}
