package selection

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Options says which documents may be hits in addition to what the filter says. The zero
// value: documents of tier 4 that have not expired at the beginning of 1970, are not
// superseded, archived or quarantined.
type Options struct {
	// Now is the moment at which a document must not have expired, in
	// microseconds since 1970.
	Now int64
	// Tiers are the tiers to search, each a TierBit. Default: tier 4.
	Tiers uint8
	// Archived, Superseded and Quarantined let those documents through.
	Archived, Superseded, Quarantined bool
}

// TierBit is the bit of a tier, 1 to 4, in SelectOptions.Tiers.
func TierBit(tier int) uint8 { return 1 << (tier - 1) }

// Reason is why a document may be no hit.
type Reason uint8

// The reasons, each given only to documents that the reasons before it, Deleted
// first of all, leave over.
const (
	// Allowed: it may be a hit.
	Allowed Reason = iota
	// Filtered: the filter does not let it through, or it is of another tier.
	Filtered
	// Expired: its time is over.
	Expired
	// Superseded: another document has replaced it.
	Superseded
	// Archived: it lies in the archive.
	Archived
	// Quarantined: it waits for review.
	Quarantined
	// Deleted: it was deleted or updated, or never was.
	Deleted
)

// Selection says which documents of a Reader may be hits, and why others may
// not. It never changes and is safe for concurrent use.
type Selection struct {
	frame   *frame.Frame
	options Options
	passed  bitset.Set // what the filter lets through; nil for everything
	Allowed bitset.Set
	count   int
}

// Select finds the documents that may be hits, independently of the words of a query, so
// that ranking never has to search beyond the best documents for ones that pass.
func Select(ctx context.Context, r *lexical.Reader, f Filter, o Options) (*Selection, error) {
	o.Tiers = cmp.Or(o.Tiers, TierBit(frame.LongTerm))
	s := &Selection{frame: r.Frame(), options: o}
	if f.op != opEverything {
		e := evaluation{reader: r}
		var err error
		if s.passed, err = e.run(ctx, f); err != nil {
			return nil, err
		}
	}
	s.allow()
	return s, nil
}

// allow finds the documents that no reason stands against.
func (s *Selection) allow() {
	g := frame.Derived(s.frame, deriveStatusSets)
	expired := g.earliest <= s.options.Now
	usual := s.options.areDefault()
	if usual && s.passed == nil && !expired {
		s.Allowed, s.count = g.byDefault, g.defaultCount // never changed
		return
	}
	if s.Allowed = g.byDefault; !usual {
		s.Allowed = g.open(s.options)
	}
	s.Allowed = slices.Clone(s.Allowed)
	if s.passed != nil {
		s.Allowed.And(s.passed)
	}
	if expired {
		for _, o := range g.expiring {
			if s.frame.Expires[o] <= s.options.Now {
				s.Allowed.Remove(o)
			}
		}
	}
	s.count = s.Allowed.Count()
}

// areDefault reports whether the options, apart from the time, are the ones of a plain
// query.
func (o Options) areDefault() bool {
	o.Now = 0
	return o == Options{Tiers: TierBit(frame.LongTerm)}
}

// Has reports whether the document may be a hit.
func (s *Selection) Has(ordinal uint32) bool { return s.Allowed.Has(s.frame.Slot(ordinal)) }

// Count is how many documents may be hits.
func (s *Selection) Count() int { return s.count }

// Restores is the first moment, in microseconds since 1970, at which a document of the scope
// expires that has, or may have, replaced another; math.MaxInt64 for none.
func (s *Selection) Restores() int64 { return frame.Derived(s.frame, deriveStatusSets).restores }

// All yields the documents that may be hits, ascending.
func (s *Selection) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for o := range s.Allowed.All() {
			if !yield(s.frame.Ordinal(o)) {
				return
			}
		}
	}
}

// Why says why the document may be no hit.
func (s *Selection) Why(ordinal uint32) Reason { return s.WhySlot(s.frame.Slot(ordinal)) }

// WhySlot is Why by slot.
func (s *Selection) WhySlot(o uint32) Reason {
	f := s.frame
	switch {
	case o == 0 || f.Deleted.Has(o):
		return Deleted
	case s.passed != nil && !s.passed.Has(o) || !s.inSight(o):
		return Filtered
	case f.Expires[o] != 0 && f.Expires[o] <= s.options.Now:
		return Expired
	case !s.options.Superseded && f.IsSuperseded(o):
		return Superseded
	case !s.options.Archived && f.Flags[o]&segment.FlagArchived != 0:
		return Archived
	case !s.options.Quarantined && f.Flags[o]&segment.FlagQuarantined != 0:
		return Quarantined
	}
	return Allowed
}

// inSight reports whether the document is of a tier that is searched.
func (s *Selection) inSight(o uint32) bool { return s.options.Tiers&TierBit(s.frame.TierOf(o)) != 0 }
