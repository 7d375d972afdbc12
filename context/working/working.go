package working

import (
	"slices"
	"time"
)

// Working is what an agent is at in a session. The zero Working is nothing.
type Working struct {
	// Goal is what the agent works towards, for prompts that are given none.
	Goal string
	// Plan is how.
	Plan Plan
	// Active are the names of the skills that stand in prompts in full, in the order in
	// which they became active. Inactive are the skills that the session's settings
	// activate but that prompts leave out.
	Active, Inactive []string
	// Progress is what the agent says of how far it is; empty: it said nothing.
	Progress string
	// Scratchpad is what it notes for itself.
	Scratchpad string
	// Heartbeat is when the agent last said that it is alive; zero for never.
	Heartbeat time.Time
	// Events wait for the agent to decide about them, each once, the oldest first.
	Events []Event
	// Decisions are the newest that it took, at most MaxDecisions, the oldest first.
	Decisions []Decision
	// Questions are what it wants to know, each once; Evidence is what it knows of that,
	// Citations where from, the newest MaxCitations, each once.
	Questions []string
	Evidence  []Evidence
	Citations []string
}

// Empty reports whether it says nothing.
func (w *Working) Empty() bool {
	return w.Goal == "" && len(w.Plan) == 0 && len(w.Active) == 0 && len(w.Inactive) == 0 && w.Heartbeat.IsZero() && !w.Noted()
}

// Noted reports whether it says more than a goal, a plan, skills and a heartbeat.
func (w *Working) Noted() bool {
	return w.Progress != "" || w.Scratchpad != "" || len(w.Events)+len(w.Decisions)+
		len(w.Questions)+len(w.Evidence)+len(w.Citations) > 0
}

// Skills are the names of the active skills. first are the skills that the settings
// activate.
func (w *Working) Skills(first []string) []string {
	names := make([]string, 0, len(first)+len(w.Active))
	for _, name := range first {
		if !slices.Contains(w.Inactive, name) {
			names = append(names, name)
		}
	}
	for _, name := range w.Active {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Plan is what an agent means to do, in order.
type Plan []Item

// Item is a step of a plan.
type Item struct {
	// Text is what to do, on one line.
	Text string
	// Status is how far it is.
	Status Status
	// Begun is the place in the session's log behind which its steps stand, Ended that of
	// their last: it is 0 while the item is not over. Both are set by With, 0 where they are
	// not known, and no part of a request.
	Begun, Ended uint64 `json:"-"`
}

// Over reports whether nothing more is done about it.
func (i *Item) Over() bool { return i.Status == Done || i.Status == Failed }

// Status is how far an item is.
type Status uint8

// The statuses; the zero Status is Pending.
const (
	// Pending items are not begun.
	Pending Status = iota
	// InProgress items are begun.
	InProgress
	// Done items are done.
	Done
	// Failed items were given up.
	Failed
)

// String is its name.
func (s Status) String() string {
	return [...]string{"pending", "in_progress", "done", "failed"}[min(s, Failed)]
}

// Done is how many items are done.
func (p Plan) Done() int {
	n := 0
	for i := range p {
		if p[i].Status == Done {
			n++
		}
	}
	return n
}

// Next is the item to go on with: the first that is begun, or else the first that is
// not; nil where there is neither.
func (p Plan) Next() *Item {
	for _, status := range []Status{InProgress, Pending} {
		if at := slices.IndexFunc(p, func(i Item) bool { return i.Status == status }); at >= 0 {
			return &p[at]
		}
	}
	return nil
}

// changed is the next plan with the places in the log of its items, where last is the last
// entry. An item of the same text is the same one. What is over without having been begun was
// begun when it came into the plan, or when the item before it was over.
func (p Plan) changed(next Plan, last uint64) Plan {
	next = slices.Clone(next)
	known, over := slices.Clone(p), uint64(0)
	for i := range known {
		over = max(over, known[i].Ended)
	}
	for i := range next {
		item := &next[i]
		before := Item{Begun: last}
		if at := slices.IndexFunc(known, func(k Item) bool { return k.Text == item.Text }); at >= 0 {
			before = known[at]
			known = slices.Delete(known, at, at+1)
		}
		item.Begun, item.Ended = before.Begun, 0
		switch {
		case item.Over() && before.Over():
			item.Ended = before.Ended
		case item.Over():
			item.Ended = last
			if before.Status == Pending {
				item.Begun = max(item.Begun, over)
			}
		case item.Status == InProgress && before.Status != InProgress:
			item.Begun = last
		}
	}
	return next
}

// Change says what becomes otherwise.
type Change struct {
	// Goal is the new goal; empty takes it away, nil leaves it.
	Goal *string
	// Plan is the new plan; one without items takes it away, nil leaves it.
	Plan *Plan
	// Activate are skills to show in full, Deactivate to show no longer so. What is in
	// both is active in the end.
	Activate, Deactivate []string
	// Progress and Scratchpad are new texts; empty ones take them away, nil leaves them.
	Progress, Scratchpad *string
	// Beat says that the agent is alive.
	Beat bool
	// Signals are what happened elsewhere, Acknowledge what the agent decides about events;
	// the signals come first.
	Signals     []Signal
	Acknowledge []Acknowledgement
	// Ask are questions to add, Answered those to take away, and Found evidence to add.
	Ask, Answered []string
	Found         []Evidence
}

// Empty reports whether it changes nothing.
func (c *Change) Empty() bool {
	return c.Goal == nil && c.Plan == nil && c.Progress == nil && c.Scratchpad == nil && !c.Beat &&
		len(c.Activate)+len(c.Deactivate)+len(c.Signals)+len(c.Acknowledge)+len(c.Ask)+len(c.Answered)+len(c.Found) == 0
}

// Grows reports whether the agent adds words itself: such a change is refused if it makes
// the text too long. Changes from elsewhere never are.
func (c *Change) Grows() bool {
	return c.Plan != nil || c.Progress != nil || c.Scratchpad != nil || len(c.Ask)+len(c.Found) > 0
}

// With returns w as the change makes it at a moment, and behind the last entry of the
// session's log. w stays as it is.
func (w Working) With(c Change, now time.Time, last uint64) Working {
	if c.Goal != nil {
		w.Goal = *c.Goal
	}
	if c.Progress != nil {
		w.Progress = *c.Progress
	}
	if c.Scratchpad != nil {
		w.Scratchpad = *c.Scratchpad
	}
	if c.Beat {
		w.Heartbeat = now
	}
	if c.Plan != nil {
		w.Plan = w.Plan.changed(*c.Plan, last)
	}
	for _, name := range c.Deactivate {
		w.Active = without(w.Active, name)
		w.Inactive = append(without(w.Inactive, name), name)
	}
	for _, name := range c.Activate {
		w.Inactive = without(w.Inactive, name)
		if !slices.Contains(w.Active, name) {
			w.Active = append(slices.Clip(w.Active), name)
		}
	}
	return w.learned(c).signalled(c.Signals).decided(c.Acknowledge, now)
}

// without are the names but one, in their own slice.
func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == name })
}
