package history

import (
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// pending returns the atoms that no batch has decided about, up to the first
// that waits for a result.
func (p *pass) pending() []atom {
	through := p.h.Through
	for i := range p.folds {
		through = max(through, p.folds[i].Through)
	}
	from := slices.IndexFunc(p.atoms, func(a atom) bool { return p.position(a) > through })
	if from < 0 {
		return nil
	}
	waiting := p.atoms[from:]
	if open := slices.IndexFunc(waiting, func(a atom) bool { return a.open }); open >= 0 {
		waiting = waiting[:open]
	}
	return waiting
}

// position is the place of an atom in the log.
func (p *pass) position(a atom) uint64 { return p.entries[a.first()].Position }

// without leaves out the newest turns that are to stay as they are. An open
// one, which pending leaves out, is one of them.
func (p *pass) without(pending []atom, keep int) []atom {
	if n := len(p.atoms); n > 0 && p.atoms[n-1].open {
		keep--
	}
	for keep > 0 && len(pending) > 0 {
		last := len(pending) - 1
		if !pending[last].fixed {
			keep--
		}
		pending = pending[:last]
	}
	return pending
}

// batch folds everything but the newest turns.
func (p *pass) batch(reason Reason, keep int) error {
	atoms := p.without(p.pending(), keep)
	folds := p.write(atoms, reason)
	if len(folds) == 0 {
		return nil
	}
	if reason == ByPrice && !p.pays(folds) {
		return nil
	}
	p.add(folds)
	p.decision.Reason = reason
	limit := p.l.opts.FoldTokens
	if p.h.Budget > 0 {
		limit = min(limit, int(DefaultFoldShare*float64(p.h.Budget)))
	}
	limit = min(limit, maxBatchBytes/2/weightBytes)
	target := limit * denseTarget / 100
	if reason == ByBudget {
		// There is no room for the turns to come.
		limit = target
	}
	if p.foldTokens() <= limit {
		return nil
	}
	return p.densify(target)
}

// denseTarget is to how much of their limit, in percent, folds are made denser:
// low enough that it is long until the next time.
const denseTarget = 66

// add takes folds into the history.
func (p *pass) add(folds []Fold) {
	p.folds = slices.Concat(p.folds, folds)
	p.made = append(p.made, folds...)
	p.render()
	p.made = slices.DeleteFunc(p.made, func(f Fold) bool {
		return !slices.ContainsFunc(p.live, func(live Fold) bool { return live.first() == f.first() && live.Text == f.Text })
	})
}

// write makes the folds of one batch: one for each run of atoms that stand
// together, where it takes less than they do.
func (p *pass) write(atoms []atom, reason Reason) []Fold {
	w := p.writer(p.namesOf(p.live))
	calls, cuts := sum(p.live, func(f *Fold) int { return f.Calls }), sum(p.live, func(f *Fold) int { return f.Cuts })
	foldable := slices.DeleteFunc(slices.Clone(atoms), func(a atom) bool { return a.fixed })
	w.chooseCuts(p.entries, foldable, calls, cuts)
	var made []Fold
	run := newRun()
	for _, a := range atoms {
		if part := p.partOf(a); part != run.part {
			made = p.finish(made, &run)
			run.part = part
		}
		line := ""
		w.calls, w.cuts = 0, 0
		if !a.fixed {
			line = w.bounded(p.entries, a)
		}
		if line == "" || p.l.count(line) >= p.atomSize(a) {
			made = p.finish(made, &run)
			continue
		}
		size := p.stored(a, line)
		if len(run.lines) > 0 && run.bytes+size > maxFoldBytes {
			made = p.finish(made, &run)
		}
		run.bytes += size
		run.lines = append(run.lines, line)
		run.atoms = append(run.atoms, a)
		run.digest.add(p.entries, a, w.identifiers)
		run.calls += w.calls
		run.cuts += w.cuts
	}
	made = p.finish(made, &run)
	for i := range made {
		made[i].Reason = reason
		made[i].Through = p.position(atoms[len(atoms)-1])
	}
	return made
}

// run is what one fold is made of.
type run struct {
	lines       []string
	atoms       []atom
	calls, cuts int
	bytes       int
	digest      *digest
	part        *Part // which it is of, or nil
}

// partOf is the part of the work that an atom belongs to, or nil.
func (p *pass) partOf(a atom) (own *Part) {
	last := p.entries[a.members[len(a.members)-1]].Position
	for i := range p.h.Parts {
		part := &p.h.Parts[i]
		if part.After < p.position(a) && last <= part.Through && (own == nil || own.After <= part.After) {
			own = part
		}
	}
	return own
}

// bounded is the folded form of an atom, without its end if it is too long for
// any fold: what a turn of a thousand calls named can be read by its reference.
func (w *writer) bounded(entries []Entry, a atom) string {
	line := text.Valid(w.atom(entries, a))
	if len(line) <= maxLineBytes {
		return line
	}
	line = text.Head(line, maxLineBytes)
	if at := strings.LastIndexByte(line, '\n'); at > 0 {
		line = line[:at]
	}
	return line + "…"
}

// stored is about what an atom and its line add to a stored fold.
func (p *pass) stored(a atom, line string) int {
	return len(line) + 1 + sum(a.members, func(i *int) int { return len(p.entries[*i].fullRef()) + refBytes + spanBytes })
}

func newRun() run { return run{digest: newDigest()} }

// finish makes a fold of a run and begins a new one. A fold that would not be
// shorter is not made.
func (p *pass) finish(made []Fold, current *run) []Fold {
	r := *current
	*current = newRun()
	current.part = r.part
	if len(r.atoms) == 0 {
		return made
	}
	f := p.lined(&r, len(made))
	if f.Tokens >= f.Before {
		return made
	}
	if r.part != nil {
		r.digest.steps = slices.Insert(r.digest.steps, 0, digestStep{ref: r.digest.first, words: text.Cut(r.part.Name, digestCallBytes, text.Ellipsis)})
	}
	r.digest.bound()
	f.Digest = string(r.digest.encode())
	p.fill(&f, r.atoms)
	return append(made, f)
}

// lined is the fold of a run's lines, without its entries, behind so many other folds of
// its batch. Before its lines stand the caller's summary, in the first fold of the batch, and
// the name of the part that it is of, each if the fold stays shorter with it.
func (p *pass) lined(r *run, behind int) Fold {
	header := p.l.opts.Header
	if behind+len(p.live) > 0 {
		header = laterHeader
	}
	before := sum(r.atoms, func(a *atom) int { return p.atomSize(*a) })
	var heads []string
	if r.part != nil {
		heads = append(heads, inline(r.part.Name))
	}
	if text := p.summary(); text != "" && behind+len(p.made) == 0 {
		heads = append(heads, text)
	}
	lines := r.lines
	f := p.newFold(LevelLines, header, lines)
	for _, head := range heads {
		with := slices.Insert(slices.Clone(lines), 0, head)
		if longer := p.newFold(LevelLines, header, with); longer.Tokens < before {
			f, lines = longer, with
		}
	}
	f.Before = before
	f.Calls, f.Cuts = r.calls, r.cuts
	return f
}

// fill notes the entries of a fold's atoms.
func (p *pass) fill(f *Fold, atoms []atom) {
	var positions []uint64
	var refs []string
	for _, a := range atoms {
		f.Original += p.atomOriginal(a)
		f.Turns++
		for _, i := range a.members {
			positions = append(positions, p.entries[i].Position)
			refs = append(refs, p.entries[i].fullRef())
		}
	}
	f.Refs = distinctRefs(refs)
	slices.Sort(positions)
	for _, position := range positions {
		f.include(position)
	}
}

// distinctRefs returns references in order, each once: the parts of one step
// have the same.
func distinctRefs(refs []string) []string {
	known := map[string]bool{"": true}
	var out []string
	for _, ref := range refs {
		if !known[ref] {
			known[ref] = true
			out = append(out, ref)
		}
	}
	return out
}

// newFold is a fold of lines, without its entries.
func (p *pass) newFold(level int, header string, lines []string) Fold {
	if header != laterHeader && hasQuotes(lines) {
		header += "\n" + quoteNote
	}
	s := text.Valid(header + "\n" + strings.Join(lines, "\n"))
	f := Fold{
		Policy: PolicyLedger,
		Batch:  p.h.Batch + 1,
		Level:  level,
		Text:   s,
		Tokens: p.l.count(s) + p.l.opts.MessageTokens,
		Seen:   p.end(),
	}
	for i := range p.h.Folds {
		f.Batch = max(f.Batch, p.h.Folds[i].Batch+1)
	}
	return f
}

// end is the last position of the log.
func (p *pass) end() uint64 {
	last := uint64(0)
	if n := len(p.h.Entries); n > 0 {
		last = p.h.Entries[n-1].Position
	}
	for i := range p.live {
		last = max(last, p.live[i].last())
	}
	return last
}

// writer returns a writer that knows what the prompt shows: everything that
// stays as it is, and what the folds that stay show.
func (p *pass) writer(stay *names) *writer {
	if p.fixed == nil {
		p.fixed = newNames()
		for _, a := range p.atoms {
			if !a.fixed {
				continue
			}
			for _, i := range a.members {
				p.fixed.shows(p.entries[i].Text, p.l.opts.Memo)
				p.fixed.shows(p.entries[i].asked(), p.l.opts.Memo)
			}
		}
	}
	seen := newVisible()
	seen.others = []*names{p.fixed, stay}
	return &writer{count: p.l.count, seen: seen, actions: make(map[string]string), ranked: make(map[string][]excerpt.Identifier)}
}

// namesOf collects the names that folds show, once for everything that is written next to
// them.
func (p *pass) namesOf(folds []Fold) *names {
	each := make([]*names, len(folds))
	ids, lines := 0, 0
	for i := range folds {
		each[i] = p.l.opts.Memo.of(folds[i].Text)
		ids, lines = ids+len(each[i].ids), lines+len(each[i].lines)
	}
	all := &names{ids: make(map[string]struct{}, ids), lines: make(map[string]struct{}, lines)}
	for _, n := range each {
		maps.Copy(all.ids, n.ids)
		maps.Copy(all.lines, n.lines)
	}
	return all
}

// shows takes in a text of the prompt.
func (n *names) shows(text string, memo *Memo) {
	if len(text) < memoTextBytes {
		n.add(text)
		return
	}
	known := memo.of(text)
	maps.Copy(n.ids, known.ids)
	maps.Copy(n.lines, known.lines)
}
