package rank

import (
	"context"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Who asks for some work wants it done as they said it always should be: "when I ask for code,
// use tabs". Such an instruction is short, and every long answer to a request of the kind has
// more of its words. So the best one is lifted as far as to the third place.
const (
	// heedShare is the part of its own rank by which an instruction is lifted at most: what
	// has less than a third of the rank at heedPlace is about something else.
	heedShare = 2
	// heedPlace is the best place that it is lifted to, counted from zero.
	heedPlace = 2
)

// heed lifts the best instruction for the work that the query asks for. The candidates are
// sorted, and are so afterwards.
func (r *ranking) heed(ctx context.Context, best []candidate) error {
	if r.vectors.nearest <= 0 || r.query.Instructs == nil || len(best) <= heedPlace || r.query.without(SignalAnswer) {
		return nil
	}
	level := best[heedPlace].rank
	worth := func(c *candidate, sure float64) float32 { return (c.rank + c.repeated) * float32(1+heedShare*sure) }
	var all []statement
	for i := range best {
		c := &best[i]
		if f := r.parts[c.part].frame; worth(c, 1) > level && f.Body[c.slot] <= matterWords && f.Flags[c.slot]&segment.FlagAsks == 0 {
			all = append(all, statement{candidate: c})
		}
	}
	if len(all) == 0 {
		return nil
	}
	instructs := r.query.Instructs(ctx)
	if instructs == nil {
		return nil
	}
	all, err := r.withVectors(ctx, all)
	if err != nil {
		return err
	}
	var heeded *candidate
	to := float32(0)
	for _, t := range all {
		sure := instructs(t.vector)
		if sure == 0 || worth(t.candidate, sure) <= to {
			continue
		}
		foreign, err := r.isForeign(ctx, t.candidate)
		if err != nil {
			return err
		}
		if !foreign {
			heeded, to = t.candidate, worth(t.candidate, sure)
		}
	}
	if heeded == nil || heeded.rank >= level {
		return nil
	}
	to = min(to, math.Nextafter32(level, math.MaxFloat32))
	heeded.heeded, heeded.rank = to-heeded.rank, to
	slices.SortFunc(best, func(c, d candidate) int { return d.compare(c) })
	return nil
}

// isForeign reports whether a candidate's text came from where no instruction is taken from.
func (r *ranking) isForeign(ctx context.Context, c *candidate) (bool, error) {
	terms := make([]string, len(r.query.Foreign))
	for i, origin := range r.query.Foreign {
		terms[i] = string(byte(segment.Origin)) + segment.Value(origin)
	}
	p := r.parts[c.part]
	found, err := p.Reader.Postings(ctx, terms)
	if err != nil {
		return false, err
	}
	o := p.frame.Ordinal(c.slot)
	return slices.ContainsFunc(found, func(origin lexical.TermPostings) bool {
		for _, at := range origin.Blocks {
			if o < at.First || o > at.Last {
				continue
			}
			var postings []segment.Posting
			if postings, err = at.Decode(nil); err != nil || isAmong(postings, o) {
				return true
			}
		}
		return isAmong(origin.Tail, o)
	}), err
}

func isAmong(postings []segment.Posting, o uint32) bool {
	return slices.ContainsFunc(postings, func(p segment.Posting) bool { return p.Ordinal == o })
}
