package lexical

import (
	"math"
	"math/bits"
	"sync"
)

// gates is what selecting derives from a frame, once: which documents stand
// behind which of the doors that options open.
type gates struct {
	once sync.Once
	// living holds the living documents of each tier, from 1.
	living [longTerm + 1]bitset
	// These are nil when no document is such.
	superseded, archived, quarantined bitset
	// expiring are the documents that will not stay, and earliest the first
	// moment at which one of them goes.
	expiring []uint32
	earliest int64
	// usual are the documents that the usual options let through, when nothing
	// has expired.
	usual bitset
	count int
}

// selecting returns what is derived from the frame.
func (f *frame) selecting() *gates {
	f.gates.once.Do(func() { f.gates.derive(f) })
	return f.gates
}

func (g *gates) derive(f *frame) {
	for tier := range g.living {
		g.living[tier] = newBitset(f.slots())
	}
	g.earliest = math.MaxInt64
	put := func(set *bitset, o uint32) {
		if *set == nil {
			*set = newBitset(f.slots())
		}
		set.set(o)
	}
	for i := range f.slots() {
		o := i + 1
		if f.dead.contains(o) {
			continue
		}
		g.living[f.tierOf(o)].set(o)
		if f.isSuperseded(o) {
			put(&g.superseded, o)
		}
		if f.flags[o]&FlagArchived != 0 {
			put(&g.archived, o)
		}
		if f.flags[o]&FlagQuarantined != 0 {
			put(&g.quarantined, o)
		}
		if f.expires[o] != 0 {
			g.expiring = append(g.expiring, o)
			g.earliest = min(g.earliest, f.expires[o])
		}
	}
	g.usual = g.open(SelectOptions{Tiers: TierBit(longTerm)})
	g.count = g.usual.size()
}

// open returns the documents that the options let through, expired ones
// included.
func (g *gates) open(o SelectOptions) bitset {
	set := make(bitset, len(g.living[0]))
	for tier := 1; tier <= longTerm; tier++ {
		if o.Tiers&TierBit(tier) != 0 {
			set.or(g.living[tier])
		}
	}
	if !o.Superseded {
		set.andNot(g.superseded)
	}
	if !o.Archived {
		set.andNot(g.archived)
	}
	if !o.Quarantined {
		set.andNot(g.quarantined)
	}
	return set
}

// size is how many ordinals are in the set.
func (s bitset) size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
