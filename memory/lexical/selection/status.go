package selection

import (
	"math"

	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// statusSets is what selecting derives from a frame, once: which documents stand
// behind which of the doors that options open.
type statusSets struct {
	// live holds the live documents of each tier, from 1.
	live [frame.LongTerm + 1]bitset.Set
	// These are nil when no document is such.
	superseded, archived, quarantined bitset.Set
	// expiring are the documents that will not stay, and earliest the first
	// moment at which one of them goes.
	expiring []uint32
	earliest int64
	// restores is the first moment at which one goes that has replaced another.
	restores int64
	// byDefault are the documents that the usual options let through, when nothing
	// has expired.
	byDefault    bitset.Set
	defaultCount int
}

func deriveStatusSets(f *frame.Frame) *statusSets {
	g := &statusSets{earliest: math.MaxInt64, restores: math.MaxInt64}
	unknown := false // whether some document does not say what has replaced it
	for tier := range g.live {
		g.live[tier] = bitset.New(f.Slots())
	}
	put := func(set *bitset.Set, o uint32) {
		if *set == nil {
			*set = bitset.New(f.Slots())
		}
		set.Add(o)
	}
	for i := range f.Slots() {
		o := i + 1
		if f.Deleted.Contains(o) {
			continue
		}
		g.live[f.TierOf(o)].Add(o)
		if f.IsSuperseded(o) {
			put(&g.superseded, o)
			by := f.Superseder[o]
			unknown = unknown || by == 0
			if at := f.Expires[by]; at != 0 {
				g.restores = min(g.restores, at)
			}
		}
		if f.Flags[o]&segment.FlagArchived != 0 {
			put(&g.archived, o)
		}
		if f.Flags[o]&segment.FlagQuarantined != 0 {
			put(&g.quarantined, o)
		}
		if f.Expires[o] != 0 {
			g.expiring = append(g.expiring, o)
			g.earliest = min(g.earliest, f.Expires[o])
		}
	}
	if unknown {
		g.restores = g.earliest
	}
	g.byDefault = g.open(Options{Tiers: TierBit(frame.LongTerm)})
	g.defaultCount = g.byDefault.Count()
	return g
}

// open returns the documents that the options let through, expired ones
// included.
func (g *statusSets) open(o Options) bitset.Set {
	set := make(bitset.Set, len(g.live[0]))
	for tier := 1; tier <= frame.LongTerm; tier++ {
		if o.Tiers&TierBit(tier) != 0 {
			set.Or(g.live[tier])
		}
	}
	if !o.Superseded {
		set.AndNot(g.superseded)
	}
	if !o.Archived {
		set.AndNot(g.archived)
	}
	if !o.Quarantined {
		set.AndNot(g.quarantined)
	}
	return set
}
