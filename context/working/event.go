package working

import (
	"cmp"
	"slices"
	"time"
)

// Urgency is how soon an event wants a decision; the zero Urgency is Normal.
type Urgency uint8

// The urgencies. From High on an event is a risk, and asks for an interrupt.
const (
	Normal Urgency = iota
	Low
	High
	Critical
)

// String is the name that prompts show.
func (u Urgency) String() string {
	return [...]string{"normal", "low", "high", "critical"}[min(u, Critical)]
}

// rank orders urgencies.
func (u Urgency) rank() int { return [...]int{1, 0, 2, 3}[min(u, Critical)] }

// interrupts reports whether an event of that urgency is a risk.
func (u Urgency) interrupts() bool { return u >= High }

// How a measured change becomes an urgency: up to quietDelta it is no event, and over
// highDelta and criticalDelta it is urgent.
const (
	quietDelta    = 0.1
	highDelta     = 0.5
	criticalDelta = 0.8
)

// Signal says that something happened elsewhere.
type Signal struct {
	// ID distinguishes events. Type is their sort; empty is DefaultType. Summary says what
	// happened, on one line.
	ID, Type, Summary string
	Urgency           Urgency
	// Delta is a measured change that decides about the urgency in place of Urgency; nil
	// is none.
	Delta *float64
}

// DefaultType is that of signals that name none.
const DefaultType = "signal"

// Event is a signal that waits for a decision.
type Event struct {
	ID, Type, Summary string
	Urgency           Urgency
}

// event is what a signal becomes; false for none.
func (s *Signal) event() (Event, bool) {
	e := Event{s.ID, s.Type, s.Summary, s.Urgency}
	e.Type = cmp.Or(e.Type, DefaultType)
	if s.Delta == nil {
		return e, true
	}
	switch delta := *s.Delta; {
	case delta > criticalDelta:
		e.Urgency = Critical
	case delta > highDelta:
		e.Urgency = High
	case delta > quietDelta:
		e.Urgency = Low
	default:
		return e, false
	}
	return e, true
}

// Verdict is what an agent decides about an event; the zero Verdict is none.
type Verdict uint8

// The verdicts.
const (
	Ignore Verdict = iota + 1
	// Defer lets a signal of the same id wait again.
	Defer
	Replan
	Decompose
	Handoff
	Terminate
)

// String is its name.
func (v Verdict) String() string {
	return [...]string{"", "ignore", "defer", "replan", "decompose", "handoff", "terminate"}[min(v, Terminate)]
}

// Acknowledgement decides about the event of an id.
type Acknowledgement struct {
	ID      string
	Verdict Verdict
}

// Decision is an event that was decided about.
type Decision struct {
	ID, Summary string
	Verdict     Verdict
	Time        time.Time
}

// Interrupt reports whether the agent should stop and look: an event waits that is a risk.
func (w *Working) Interrupt() bool {
	return slices.ContainsFunc(w.Events, func(e Event) bool { return e.Urgency.interrupts() })
}

// Risks are the events that wait and are risks.
func (w *Working) Risks() []Event {
	return slices.DeleteFunc(slices.Clone(w.Events), func(e Event) bool { return !e.Urgency.interrupts() })
}

// ShownDecisions are the last five.
func (w *Working) ShownDecisions() []Decision {
	return w.Decisions[max(len(w.Decisions)-shownDecisions, 0):]
}

// signalled takes signals in. One of an event that waits changes that one, and may only
// make it more urgent; one of an event that was decided about is dropped, unless that was
// deferred.
func (w Working) signalled(signals []Signal) Working {
	for i := range signals {
		e, ok := signals[i].event()
		if !ok {
			continue
		}
		at := slices.IndexFunc(w.Events, func(old Event) bool { return old.ID == e.ID })
		switch {
		case at >= 0:
			if old := w.Events[at].Urgency; e.Urgency.rank() < old.rank() {
				e.Urgency = old
			}
			w.Events = slices.Clone(w.Events)
			w.Events[at] = e
		case !w.settled(e.ID):
			w.Events = append(slices.Clip(w.Events), e)
		}
	}
	return w
}

// settled reports whether an event was decided about for good.
func (w *Working) settled(id string) bool {
	for _, d := range slices.Backward(w.Decisions) {
		if d.ID == id {
			return d.Verdict != Defer
		}
	}
	return false
}

// decided takes decisions in. One about an event that does not wait changes nothing.
func (w Working) decided(all []Acknowledgement, now time.Time) Working {
	for _, a := range all {
		at := slices.IndexFunc(w.Events, func(e Event) bool { return e.ID == a.ID })
		if at < 0 {
			continue
		}
		w.Decisions = append(slices.Clip(w.Decisions), Decision{a.ID, w.Events[at].Summary, a.Verdict, now})
		w.Decisions = w.Decisions[max(len(w.Decisions)-MaxDecisions, 0):]
		w.Events = slices.Delete(slices.Clone(w.Events), at, at+1)
	}
	return w
}

// Waiting is what is shown of events that wait: one, or several of one type.
type Waiting struct {
	// Type is that of all of them.
	Type string
	// IDs are theirs; Summary says what happened, or how many there are.
	IDs     []string
	Summary string
	// Sample is the summary of the first of several.
	Sample string
	// Urgency is the highest.
	Urgency Urgency
}

// Once groupFrom events wait, events of a type with more than groupOver of them become one.
const (
	groupFrom = 10
	groupOver = 3
)

// Waiting are the events that wait, what is critical first, then in order: many of one
// type as one.
func (w *Working) Waiting() []Waiting {
	over := groupOver
	if len(w.Events) < groupFrom {
		over = len(w.Events)
	}
	return criticalFirst(grouped(w.Events, over, func(e Event) string { return e.Type }))
}

func criticalFirst(all []Waiting) []Waiting {
	slices.SortStableFunc(all, func(a, b Waiting) int {
		switch {
		case (a.Urgency == Critical) == (b.Urgency == Critical):
			return 0
		case a.Urgency == Critical:
			return -1
		}
		return 1
	})
	return all
}

// grouped makes one of events with the same key where they are more than over.
func grouped(events []Event, over int, key func(Event) string) []Waiting {
	count := make(map[string]int)
	for _, e := range events {
		count[key(e)]++
	}
	at := make(map[string]int)
	var out []Waiting
	for _, e := range events {
		k := key(e)
		i, begun := at[k]
		switch {
		case count[k] <= over:
			out = append(out, Waiting{Type: e.Type, IDs: []string{e.ID}, Summary: e.Summary, Urgency: e.Urgency})
			continue
		case !begun:
			at[k] = len(out)
			out = append(out, Waiting{Type: k, IDs: []string{e.ID}, Summary: groupSummary(count[k], k), Sample: e.Summary, Urgency: e.Urgency})
			continue
		}
		p := &out[i]
		p.IDs = append(p.IDs, e.ID)
		if e.Urgency.rank() > p.Urgency.rank() {
			p.Urgency = e.Urgency
		}
	}
	return out
}
