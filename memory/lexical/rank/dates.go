package rank

import "time"

// toldAfter is for how long, in microseconds, what happened is still talked about: a
// document that comes so long after a moment counts less and less.
const toldAfter = 10 * 24 * 60 * 60 * 1e6

// placeSpans gives spans without a year the latest one that has begun when the
// last event was.
func (r *ranking) placeSpans() {
	last := int64(0)
	for _, p := range r.parts {
		last = max(last, p.derived.lastEvent)
	}
	if last == 0 {
		return // nothing has a time
	}
	for _, s := range r.query.Spans {
		if s.Yearly {
			s = s.before(last)
		}
		r.spans = append(r.spans, s)
	}
}

// before moves the span back by whole years until it begins at the moment or
// before it.
func (s Span) before(last int64) Span {
	from, to, end := time.UnixMicro(s.From).UTC(), time.UnixMicro(s.To).UTC(), time.UnixMicro(last).UTC()
	years := max(0, from.Year()-end.Year())
	if from.AddDate(-years, 0, 0).After(end) {
		years++
	}
	return Span{From: from.AddDate(-years, 0, 0).UnixMicro(), To: to.AddDate(-years, 0, 0).UnixMicro()}
}

// closeness says from 0 to 1 how near an event is to a moment that the query
// names.
func (r *ranking) closeness(event int64) (near float32) {
	if event == 0 {
		return 0
	}
	for _, s := range r.spans {
		switch {
		case event < s.From:
		case event < s.To:
			return 1
		default:
			near = max(near, 1-float32(event-s.To)/toldAfter)
		}
	}
	return near
}

// onDate reports whether the document's event was at a moment that the query
// names, which makes it a candidate without any word of the query.
func (r *ranking) onDate(p *rankedPart, o uint32) bool {
	return len(r.spans) > 0 && !p.frame.Deleted.Contains(o) && r.closeness(p.frame.Event[o]) == 1
}
