package lexical

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

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
	d := segment.NewDocument("id")
	d.AddBody(g.words(8))
	d.SetFacts(segment.Facts{Session: "churn", Author: "Ann", Create: 1})
	encoded := d.Encode()
	const batch = 1000
	for last := uint32(0); int(last) < documents; last += batch {
		c := Change{}
		for i := range uint32(batch) {
			c.Add = append(c.Add, Added{Encoded: encoded})
			if o := last + i - batch + 1; last > 0 && o%uint32(each) != 0 {
				c.Delete = append(c.Delete, o)
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
	all := []int{100_000, 1000, 100}
	if testing.Short() {
		all[0] = 20_000
	}
	for _, each := range all {
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
				if s := r.Statistics(); int(s.Documents) > living || int(s.Deleted+s.Documents) != documents {
					t.Fatalf("%+v", s)
				}
				f := r.frame
				if most := 2*living + frame.MaxUnusedSlots; int(f.Slots()) > most || cap(f.Body) > 2*most || f.MemoryBytes() > 130*cap(f.Body)+300*living+documents/50 {
					t.Errorf("%s: %d living have %d slots, room for %d, and take %d bytes", name, living, f.Slots(), cap(f.Body), f.MemoryBytes())
				}
			}
		})
	}
}

// apply makes a change that must succeed.
func (g *gambler) apply(c Change) {
	g.tb.Helper()
	err := g.writer.Do(g.tb.Context(), kv.Request{Refs: []kv.Ref{Ref(modelScope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		_, _, err := g.index.Apply(ctx, tx, modelScope, c)
		return err
	}})
	if err != nil {
		g.tb.Fatal(err)
	}
}

// said returns documents of that author.
func said(author string, n int) (c Change) {
	for range n {
		d := segment.NewDocument("id")
		d.SetFacts(segment.Facts{Author: author, Create: 1})
		c.Add = append(c.Add, Added{Encoded: d.Encode()})
	}
	return c
}

func (g *gambler) mustOpen() *Reader {
	g.tb.Helper()
	r, err := g.index.Open(g.tb.Context(), g.engine, modelScope)
	if err != nil {
		g.tb.Fatal(err)
	}
	return r
}

// What is kept for readers of earlier states counts as long as it is kept.
func TestMemoryOfEarlierFrames(t *testing.T) {
	const many, each = 5000, 60
	g := mustGambler(t, rand.New(rand.NewPCG(7, 8)))
	g.apply(said("", many))
	g.settle()
	g.mustOpen()
	var all []uint32
	for o := range uint32(many) {
		all = append(all, o+1)
	}
	g.apply(Change{Delete: all})
	if g.mustOpen(); g.index.cache.Weight() < many*each {
		t.Errorf("%d bytes with an earlier frame of %d documents", g.index.cache.Weight(), many)
	}
	for range statesKept {
		g.apply(said("", 1))
		g.mustOpen()
	}
	if g.index.cache.Weight() > many*each {
		t.Errorf("%d bytes without it", g.index.cache.Weight())
	}
}

// A check finds blocks that are missing, and such as stand where none belong.
func TestCheckFindsBlocks(t *testing.T) {
	g := mustGambler(t, rand.New(rand.NewPCG(7, 8)))
	for range 40 {
		g.change()
	}
	g.settle()
	g.mustCheck()
	h, err := readHead(t.Context(), g.engine, modelScope, true)
	if err != nil {
		t.Fatal(err)
	}
	for tag, documents := range map[byte]uint32{segment.TagIDs: segment.IDsPerBlock, segment.TagColumns: segment.RowsPerBlock} {
		for name, block := range map[string]uint32{"living": g.naive.living()[0].ordinal / documents, "behind": h.Stats.Packed/documents + 1} {
			key := h.BlockKey(tag, block)
			values, err := g.engine.Get(t.Context(), kv.Index, key)
			if err != nil {
				t.Fatal(err)
			}
			was := values[0]
			if was == nil {
				g.put(key, []byte("block"))
			} else {
				g.put(key, nil)
			}
			if d, err := g.check(New(nil)); d.Total == 0 && err == nil {
				t.Errorf("block %d of %c, %s: nothing is found", block, tag, name)
			}
			g.put(key, was)
		}
	}
	g.mustCheck()
}

func (g *gambler) put(key, value []byte) {
	g.tb.Helper()
	err := g.writer.Do(g.tb.Context(), kv.Request{Refs: []kv.Ref{Ref(modelScope)}, Stage: func(_ context.Context, tx *kv.Tx) error {
		putBlock(tx, key, value)
		return nil
	}})
	if err != nil {
		g.tb.Fatal(err)
	}
}
