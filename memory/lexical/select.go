package lexical

import (
	"context"
	"iter"
	"slices"
)

// SelectOptions says which documents may be hits beside those that the filter
// lets through. The zero value: documents of tier 4 that have not expired at
// the beginning of 1970, are not superseded, archived or quarantined.
type SelectOptions struct {
	// Now is the moment at which a document must not have expired, in
	// microseconds since 1970.
	Now int64
	// AsOf, in microseconds since 1970, asks for what was known at that moment:
	// what was created later is left out, and what was superseded later is not
	// superseded. Expiry stays a matter of Now. Zero: no such moment.
	AsOf int64
	// Tiers are the tiers to search, each a TierBit. Default: tier 4.
	Tiers uint8
	// Archived, Superseded and Quarantined let those documents through.
	Archived, Superseded, Quarantined bool
}

// TierBit is the bit of a tier, 1 to 4, in SelectOptions.Tiers.
func TierBit(tier int) uint8 { return 1 << (tier - 1) }

// longTerm is the last tier, and that of a document that names none.
const longTerm = 4

// Reason is why a document may be no hit.
type Reason uint8

// The reasons, each given only to documents that the reasons before it, Dead
// first of all, leave over.
const (
	// Allowed: it may be a hit.
	Allowed Reason = iota
	// Filtered: the filter does not let it through, it is of another tier, or
	// it was created after the moment asked for.
	Filtered
	// Expired: its time is over.
	Expired
	// Superseded: another document has replaced it.
	Superseded
	// Archived: it lies in the archive.
	Archived
	// Quarantined: it waits for review.
	Quarantined
	// Dead: it was deleted or updated, or never was.
	Dead
)

// Selection says which documents of a Reader may be hits, and why others may
// not. It never changes and is safe for concurrent use.
type Selection struct {
	frame   *frame
	options SelectOptions
	passed  bitset // what the filter lets through; nil for everything
	allowed bitset
	count   int
}

// Select finds the documents that may be hits, whatever the words of a query,
// so that ranking never has to look behind the best ones for those that pass.
func (r *Reader) Select(ctx context.Context, f Filter, o SelectOptions) (*Selection, error) {
	if o.Tiers == 0 {
		o.Tiers = TierBit(longTerm)
	}
	s := &Selection{frame: r.frame, options: o}
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
	if s.options.AsOf != 0 {
		s.allowOneByOne()
		return
	}
	g := s.frame.selecting()
	expired := g.earliest <= s.options.Now
	usual := s.options.usual()
	if usual && s.passed == nil && !expired {
		s.allowed, s.count = g.usual, g.count // never changed
		return
	}
	if s.allowed = g.usual; !usual {
		s.allowed = g.open(s.options)
	}
	s.allowed = slices.Clone(s.allowed)
	if s.passed != nil {
		s.allowed.and(s.passed)
	}
	if expired {
		for _, o := range g.expiring {
			if s.frame.expires[o] <= s.options.Now {
				s.allowed.clear(o)
			}
		}
	}
	s.count = s.allowed.size()
}

func (s *Selection) allowOneByOne() {
	s.allowed = newBitset(s.frame.slots())
	for i := range s.frame.slots() {
		if s.why(i+1) == Allowed {
			s.allowed.set(i + 1)
			s.count++
		}
	}
}

// usual tells whether the options are those of a query that asks for nothing
// special, whatever the time.
func (o SelectOptions) usual() bool {
	o.Now = 0
	return o == SelectOptions{Tiers: TierBit(longTerm)}
}

// Has tells whether the document may be a hit.
func (s *Selection) Has(ordinal uint32) bool { return s.allowed.has(s.frame.slot(ordinal)) }

// Count is how many documents may be hits.
func (s *Selection) Count() int { return s.count }

// All yields the documents that may be hits, ascending.
func (s *Selection) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for o := range s.allowed.all() {
			if !yield(s.frame.ordinal(o)) {
				return
			}
		}
	}
}

// Why says why the document may be no hit.
func (s *Selection) Why(ordinal uint32) Reason { return s.why(s.frame.slot(ordinal)) }

// why is Why by slot.
func (s *Selection) why(o uint32) Reason {
	f := s.frame
	switch {
	case o == 0 || f.dead.has(o):
		return Dead
	case s.passed != nil && !s.passed.has(o) || !s.known(o):
		return Filtered
	case f.expires[o] != 0 && f.expires[o] <= s.options.Now:
		return Expired
	case !s.options.Superseded && s.superseded(o):
		return Superseded
	case !s.options.Archived && f.flags[o]&FlagArchived != 0:
		return Archived
	case !s.options.Quarantined && f.flags[o]&FlagQuarantined != 0:
		return Quarantined
	}
	return Allowed
}

// known tells whether the document is of a tier that is searched and was there
// at the moment asked for.
func (s *Selection) known(o uint32) bool {
	return s.options.Tiers&TierBit(s.frame.tierOf(o)) != 0 &&
		(s.options.AsOf == 0 || s.frame.create[o] <= s.options.AsOf)
}

// tierOf is the tier of a document.
func (f *frame) tierOf(o uint32) int {
	if tier := int(f.tier[o]); tier >= 1 && tier <= longTerm {
		return tier
	}
	return longTerm
}

func (s *Selection) superseded(o uint32) bool {
	f := s.frame
	if s.options.AsOf == 0 {
		return f.isSuperseded(o)
	}
	by, own := f.superseder[o], f.superseded[o]
	return by != 0 && f.create[by] <= s.options.AsOf || own != 0 && own <= s.options.AsOf
}
