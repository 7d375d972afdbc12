package window

import (
	"cmp"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history/decay"
)

// Unit is what stays, moves and goes together: a message, or calls with their results.
type Unit struct {
	// Position is the place of its first entry in the log. Positions rise.
	Position uint64
	// Messages are how many it shows.
	Messages int
	// System says that it instructs: no level counts or touches it. Kept says that none
	// touches it.
	System, Kept bool
	// Results are what its calls gave, Said its messages.
	Results []Result
	Said    []decay.Said
}

// Result is what a call gave.
type Result struct {
	// ID is that of the call, Name its tool, Content stands for what it gave.
	ID, Name, Content string
	// Position is the place of its entry.
	Position uint64
}

// What Collapse leaves.
const (
	collapseFirst = 3
	collapseLast  = 5
	collapseFrom  = 9
	// keepAtLeast messages Auto leaves.
	keepAtLeast = 5
)

// Press is the state after a level. Goal is what the agent works towards.
func (s State) Press(level Level, units []Unit, goal string) State {
	p := pressing(units, goal)
	switch level {
	case Snip:
		s.Snipped = s.Snipped.with(p.positions, p.touchable(&s))
	case Micro:
		s.Marked = p.micro(&s)
	case Collapse:
		s = p.collapse(s)
	case Auto:
		s = p.auto(s)
	case Reactive:
		s = p.auto(s)
		s.Shortened = s.Shortened.with(p.positions, p.touchable(&s))
	case Renewal:
		s = p.renew(s)
	}
	s.Level = level
	return s
}

// Bare is the state in which all is left out that may be, however few units stay.
func (s State) Bare(units []Unit) State {
	p := pressing(units, "")
	s.Gone = s.Gone.with(p.positions, p.touchable(&s))
	return p.unmarked(s)
}

// renew is Auto in a fresh window: what one text stood for is left out, because the
// handoff stands for it.
func (p *presser) renew(s State) State {
	collapsed := make(map[uint64]bool)
	for _, position := range p.positions {
		if s.Collapsed.Has(position) {
			collapsed[position] = true
		}
	}
	s.Gone = s.Gone.with(p.positions, collapsed)
	s.Collapsed, s.Count, s.Goal = nil, 0, ""
	s = p.auto(s)
	s.Sprint++
	if n := len(p.positions); n > 0 {
		s.Since = p.positions[n-1] + 1
	}
	return s
}

// presser is one call of Press.
type presser struct {
	units     []Unit
	positions []uint64
	goal      string
}

func pressing(units []Unit, goal string) *presser {
	p := &presser{units: units, goal: goal}
	for i := range units {
		p.positions = append(p.positions, units[i].Position)
	}
	return p
}

// touchable are the units that stand in the prompt and that a level may touch.
func (p *presser) touchable(s *State) map[uint64]bool {
	out := make(map[uint64]bool)
	for i := range p.units {
		if u := &p.units[i]; !u.System && !u.Kept && !s.Hidden(u.Position) {
			out[u.Position] = true
		}
	}
	return out
}

// resultPlace is a result in its unit.
type resultPlace struct {
	unit   *Unit
	result int
}

// micro marks results that stand there again, or that newer ones took the place of. What
// is marked stays so.
func (p *presser) micro(s *State) []Marker {
	marked := slices.Clone(s.Marked)
	newest := make(map[string]resultPlace) // by the id of the call
	same := make(map[string]string)        // by name and content: the id of the first
	for i := range p.units {
		u := &p.units[i]
		if s.Hidden(u.Position) {
			continue
		}
		for k := range u.Results {
			r := &u.Results[k]
			if _, is := s.Marks(r.Position, r.ID); is {
				continue
			}
			before, known := newest[r.ID]
			known = known && r.ID != ""
			switch {
			case known && before.content() == r.Content && !u.Kept:
				marked = append(marked, r.marker(u, r.ID))
				continue
			case known && before.content() != r.Content && !before.unit.Kept:
				marked = append(marked, before.unit.Results[before.result].marker(before.unit, ""))
			}
			key := r.Name + "\x00" + r.Content
			if first, again := same[key]; again && !known && !u.Kept {
				marked = append(marked, r.marker(u, first))
				continue
			}
			if _, again := same[key]; !again {
				same[key] = callID(r.ID, len(same))
			}
			newest[r.ID] = resultPlace{u, k}
		}
	}
	slices.SortFunc(marked, func(a, b Marker) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	return marked
}

func (r *Result) marker(u *Unit, from string) Marker {
	return Marker{Unit: u.Position, At: r.Position, ID: r.ID, From: from}
}

func (p resultPlace) content() string { return p.unit.Results[p.result].Content }

// collapse makes one text of the messages between the first and the last.
func (p *presser) collapse(s State) State {
	all := 0
	for i := range p.units {
		if u := &p.units[i]; !u.System && !s.Hidden(u.Position) {
			all += u.Messages
		}
	}
	if all < collapseFrom {
		return s
	}
	at := 0
	middle := make(map[uint64]bool)
	for i := range p.units {
		u := &p.units[i]
		if u.System || s.Hidden(u.Position) {
			continue
		}
		if at >= collapseFirst && at+u.Messages <= all-collapseLast && !u.Kept {
			middle[u.Position] = true
			s.Count += u.Messages
		}
		at += u.Messages
	}
	if len(middle) == 0 {
		return s
	}
	s.Collapsed, s.Goal = s.Collapsed.with(p.positions, middle), p.goal
	return p.unmarked(s)
}

// auto leaves out what is worth least.
func (p *presser) auto(s State) State {
	var visible []*Unit
	n, kept := 0, 0
	for i := range p.units {
		if u := &p.units[i]; !u.System && !s.Hidden(u.Position) {
			visible = append(visible, u)
			n += u.Messages
			if u.Kept {
				kept += u.Messages
			}
		}
	}
	limit := max(keepAtLeast, n/2)
	order := p.byScore(visible, n)
	stays := make(map[uint64]bool)
	for _, u := range order {
		if kept+u.Messages > limit {
			break
		}
		kept += u.Messages
		stays[u.Position] = true
	}
	gone := make(map[uint64]bool)
	for _, u := range visible {
		if !u.Kept && !stays[u.Position] {
			gone[u.Position] = true
		}
	}
	s.Gone = s.Gone.with(p.positions, gone)
	return p.unmarked(s)
}

// byScore are the units that may leave, the best first, of equals the newest.
func (p *presser) byScore(visible []*Unit, n int) []*Unit {
	score := make(map[*Unit]float64, len(visible))
	var order []*Unit
	at := 0
	for _, u := range visible {
		best := 0.0
		for k := range u.Said {
			best = max(best, decay.Of(p.goal, min(at+k, n-1), n, &u.Said[k]))
		}
		at += u.Messages
		if score[u] = best; !u.Kept {
			order = append(order, u)
		}
	}
	slices.SortStableFunc(order, func(a, b *Unit) int {
		switch {
		case score[a] > score[b], score[a] == score[b] && a.Position > b.Position:
			return -1
		}
		return 1
	})
	return order
}

// unmarked drops the markers of hidden entries.
func (p *presser) unmarked(s State) State {
	s.Marked = slices.DeleteFunc(slices.Clone(s.Marked), func(m Marker) bool { return s.Hidden(m.Unit) })
	return s
}
