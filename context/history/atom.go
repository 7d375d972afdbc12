package history

import "slices"

// atom is what stays, moves and goes together: a turn with the results of its
// calls, the steps of one turn, or a single entry.
type atom struct {
	// members are indexes of entries, ascending.
	members []int
	// open: a call has no result yet.
	open bool
	// fixed: never folded.
	fixed bool
}

func (a atom) first() int { return a.members[0] }

// grouper groups entries into atoms.
type grouper struct {
	entries []Entry
	all     []atom
	// waiting are the calls of the newest turn that have no result yet.
	waiting []wait
}

// wait is a call without a result.
type wait struct {
	atom int
	id   string
	// optional: a turn without calls may be answered all the same; that is how
	// agents without native calls observe.
	optional bool
}

// atoms groups entries: by their Group, or by their ids. A result belongs to the newest turn that still waits
// for it; one that nothing waits for stands alone.
func atoms(entries []Entry) []atom {
	g := grouper{entries: entries, all: make([]atom, 0, len(entries))}
	for i := range entries {
		g.add(i)
	}
	for _, w := range g.waiting {
		if !w.optional {
			g.all[w.atom].open = true
		}
	}
	return g.all
}

func (g *grouper) add(i int) {
	e := &g.entries[i]
	if e.Group != 0 {
		g.addGrouped(i)
		return
	}
	switch e.Kind {
	case Result:
		if at, ok := g.answered(e.CallID, true); ok {
			g.join(at, i)
			return
		}
	case Step:
		if g.addStep(i) {
			return
		}
	case Turn:
		g.addTurn(i)
		return
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(w wait) bool { return w.optional })
	g.begin(i)
}

// addGrouped puts an entry to its group, whatever its ids are.
func (g *grouper) addGrouped(i int) {
	e := &g.entries[i]
	g.waiting = g.waiting[:0]
	last := len(g.all) - 1
	if last >= 0 && g.entries[g.all[last].first()].Group == e.Group {
		g.join(last, i)
	} else {
		g.begin(i)
		last++
	}
	g.all[last].fixed = g.all[last].fixed || e.Kind == Fixed
	g.all[last].open = g.all[last].open || e.Open
}

// begin makes an entry its own atom.
func (g *grouper) begin(i int) {
	e := &g.entries[i]
	g.all = append(g.all, atom{members: []int{i}, fixed: e.Kind == Fixed || e.Pinned})
}

func (g *grouper) join(at, i int) {
	g.all[at].members = append(g.all[at].members, i)
	g.all[at].fixed = g.all[at].fixed || g.entries[i].Pinned
}

// addStep puts a step to the turn that asked for it, or to the steps of its
// own turn right before it.
func (g *grouper) addStep(i int) bool {
	e := &g.entries[i]
	if e.CallID != "" {
		if at, ok := g.answered(e.CallID, false); ok {
			g.join(at, i)
			return true
		}
	}
	if e.TurnID == "" || len(g.all) == 0 {
		return false
	}
	last := len(g.all) - 1
	before := &g.entries[g.all[last].members[len(g.all[last].members)-1]]
	if before.Kind != Step || before.TurnID != e.TurnID {
		return false
	}
	g.join(last, i)
	return true
}

// addTurn begins a turn. Steps right before it that it asks for belong to it:
// the runner of the tools may record a step before the message is recorded.
func (g *grouper) addTurn(i int) {
	e := &g.entries[i]
	g.waiting = g.waiting[:0]
	for _, c := range e.Calls {
		g.waiting = append(g.waiting, wait{id: c.ID})
	}
	if len(e.Calls) == 0 {
		g.waiting = append(g.waiting, wait{optional: true})
	}
	g.begin(i)
	own := len(g.all) - 1
	for own > 0 && g.asksFor(g.all[own-1]) {
		g.all[own-1].members = append(g.all[own-1].members, g.all[own].members...)
		g.all[own-1].fixed = g.all[own-1].fixed || g.all[own].fixed
		g.all = g.all[:own]
		own--
	}
	for k := range g.waiting {
		g.waiting[k].atom = own
	}
}

// asksFor reports whether the newest turn waits for all of an atom's steps, and
// if so, waits no longer.
func (g *grouper) asksFor(a atom) bool {
	left := slices.Clone(g.waiting)
	for _, i := range a.members {
		e := &g.entries[i]
		at := slices.IndexFunc(left, func(w wait) bool { return !w.optional && w.id == e.CallID })
		if e.Kind != Step || e.CallID == "" || at < 0 {
			return false
		}
		left = slices.Delete(left, at, at+1)
	}
	g.waiting = left
	return true
}

// answered takes the waiting call that an id answers: the one of that id, or
// the first one where one side has none.
func (g *grouper) answered(id string, byPlace bool) (at int, ok bool) {
	found := slices.IndexFunc(g.waiting, func(w wait) bool { return w.id == id && !w.optional })
	if found < 0 && byPlace {
		found = slices.IndexFunc(g.waiting, func(w wait) bool { return id == "" || w.id == "" })
	}
	if found < 0 {
		return 0, false
	}
	at = g.waiting[found].atom
	g.waiting = slices.Delete(g.waiting, found, found+1)
	return at, true
}
