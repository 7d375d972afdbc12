package history

// pass is one call of Compact.
type pass struct {
	l *Ledger
	h History
	// folds are the history's folds and the folds made by this pass.
	folds []Fold
	// live are the folds that stand in the prompt, in order.
	live []Fold
	// entries are those in no fold, atoms their groups, sizes what each takes in
	// the prompt, wholes what it would take shown whole, and asked how much of
	// that are its calls.
	entries       []Entry
	atoms         []atom
	sizes, wholes []int
	asked         []int

	items           []ShownItem
	total, original int
	made            []Fold
	decision        Decision
	// fixed is what the entries that never fold show, once it was asked for.
	fixed *names
}

// render lays out the history with the folds there are.
func (p *pass) render() {
	p.live = Live(p.folds)
	p.entries = unfolded(p.h.Entries, p.live)
	p.atoms = atoms(p.entries)
	p.sizes, p.wholes, p.asked = make([]int, len(p.entries)), make([]int, len(p.entries)), make([]int, len(p.entries))
	p.items, p.total, p.original = make([]ShownItem, 0, len(p.entries)+len(p.live)), 0, 0
	lines := &shown{places: make(map[string]places)}
	next := 0
	for i := range p.entries {
		e := &p.entries[i]
		for ; next < len(p.live) && p.live[next].first() < e.Position; next++ {
			p.showFold(&p.live[next])
		}
		if e.Kind == Unseen {
			continue
		}
		output, saved := p.output(e, lines)
		p.sizes[i], p.asked[i] = p.l.size(e, output)
		p.wholes[i] = p.sizes[i] + saved
		p.show(ShownItem{Entry: e, Output: output, Tokens: p.sizes[i], Original: p.wholes[i]})
	}
	for ; next < len(p.live); next++ {
		p.showFold(&p.live[next])
	}
}

func (p *pass) showFold(f *Fold) {
	p.show(ShownItem{Fold: f, Tokens: f.Tokens, Original: max(f.Original, f.Before)})
}

func (p *pass) show(it ShownItem) {
	p.items = append(p.items, it)
	p.total += it.Tokens
	p.original += it.Original
}

// unfolded returns the entries that stand in no fold. Both are in order of
// their positions, but the spans of folds may interleave.
func unfolded(entries []Entry, live []Fold) []Entry {
	if len(live) == 0 {
		return entries
	}
	// Folds that end before an entry can hold no later one either.
	from := 0
	var left []Entry
	for _, e := range entries {
		for from < len(live) && live[from].last() < e.Position {
			from++
		}
		if !held(live[from:], e.Position) {
			left = append(left, e)
		}
	}
	return left
}

func held(live []Fold, position uint64) bool {
	for i := range live {
		if live[i].first() > position {
			return false
		}
		if live[i].Holds(position) {
			return true
		}
	}
	return false
}

// output is what stands for an entry's output, and how many tokens that saves
// against all of it, up to the limit of a result.
func (p *pass) output(e *Entry, lines *shown) (text string, saved int) {
	if e.Whole || p.l.opts.NoDedupe {
		return p.l.Shown(e), 0
	}
	lines.addEntry(e)
	full := e.shown()
	if full == "" {
		return "", 0
	}
	if e.Pinned || e.Kind == Fixed {
		lines.add(e.source(), full)
		return full, 0
	}
	if len(full) > maxReducedBytes {
		if short, cut, resumed := p.l.limited(e, full); short != full {
			lines.addEnds(e.source(), full, cut, resumed)
			return short, 0
		}
	}
	reduced, at := lines.reduce(e.source(), full)
	if reduced != full && p.l.count(reduced) >= p.l.count(full) {
		// What the reference would hide is shown, but nothing can refer to it.
		reduced = full
		at = nil
	}
	short, cut, resumed := p.l.limited(e, reduced)
	if short != reduced {
		lines.hideBetween(at, cut, resumed)
	}
	if reduced != full {
		saved = p.l.within(e, p.l.count(full)) - p.l.count(short)
	}
	return short, max(saved, 0)
}

// Shown is what a prompt shows of an entry's output that is neither folded nor
// deduplicated: all of it, up to the limit of a result.
func (l *Ledger) Shown(e *Entry) string {
	if e.Whole || e.Pinned || e.Kind == Fixed {
		return e.shown()
	}
	short, _, _ := l.limited(e, e.shown())
	return short
}

// Cut is a text of at most limit tokens: one that has more is shown without its middle,
// and says where the output of e can be read whole.
func (l *Ledger) Cut(e *Entry, text string, limit int) string {
	short, _, _ := l.capped(e, text, limit)
	return short
}

// limit is the most tokens that are shown of an output; negative is no bound.
func (l *Ledger) limit(e *Entry) int {
	if limit := l.opts.ResultTokens; e.Limit == 0 || limit >= 0 && limit < e.Limit {
		return limit
	}
	return e.Limit
}

// within is a size of an output within its limit.
func (l *Ledger) within(e *Entry, tokens int) int {
	if limit := l.limit(e); limit >= 0 {
		return min(tokens, limit)
	}
	return tokens
}

// limited caps an output, unless there is no limit.
func (l *Ledger) limited(e *Entry, text string) (short string, cut, resumed int) {
	limit := l.limit(e)
	if limit < 0 {
		return text, 0, 0
	}
	return l.capped(e, text, limit)
}

// Size is what an entry takes in a prompt without its output, unless that is
// shown as it is.
func (l *Ledger) Size(e *Entry) int {
	switch {
	case e.Kind == Unseen:
		return 0
	case e.Whole:
		tokens, _ := l.size(e, e.shown())
		return tokens
	}
	tokens, _ := l.size(e, "")
	return tokens
}

// size is what an entry takes in the prompt, and how much of that are its
// calls. A step is two messages there.
func (l *Ledger) size(e *Entry, output string) (tokens, asked int) {
	tokens = l.opts.MessageTokens + e.ExtraTokens
	if e.Kind == Step {
		tokens += l.opts.MessageTokens
	}
	if len(e.Calls) > 0 {
		asked = l.count(e.asked())
	}
	for _, text := range []string{e.Text, output} {
		if text != "" {
			tokens += l.count(text)
		}
	}
	return tokens + asked, asked
}

// atomOriginal is what an atom would take shown whole.
func (p *pass) atomOriginal(a atom) int {
	return sum(a.members, func(i *int) int { return p.wholes[*i] })
}

// atomSize is what an atom takes in the prompt.
func (p *pass) atomSize(a atom) int {
	return sum(a.members, func(i *int) int { return p.sizes[*i] })
}

// over reports whether the history does not fit.
func (p *pass) over() bool { return p.h.Budget > 0 && p.total > p.h.Budget }

// fold makes the batch that is due, and whatever else it takes to fit.
func (p *pass) fold() error {
	reason := p.due()
	if reason != 0 {
		if err := p.batch(reason, p.l.opts.KeepTurns); err != nil {
			return err
		}
	}
	if !p.over() {
		return nil
	}
	return p.react()
}

// react is the one attempt to make a history fit that a batch did not make fit:
// older folds are made denser, and last the newest turns fold, too.
func (p *pass) react() error {
	for _, keep := range []int{1, 0} {
		if !p.over() {
			return nil
		}
		if err := p.densify(p.foldRoom()); err != nil {
			return err
		}
		if !p.over() {
			return nil
		}
		if err := p.batch(ByBudget, keep); err != nil {
			return err
		}
	}
	if !p.over() {
		return nil
	}
	return p.densify(p.foldRoom())
}

// foldRoom is what folds may count as for the history to fit.
func (p *pass) foldRoom() int {
	return p.h.Budget - p.total + sum(p.live, func(f *Fold) int { return f.Tokens })
}

// foldTokens is what the folds count as against a limit.
func (p *pass) foldTokens() int { return sum(p.live, (*Fold).weight) }

// overflow says what is too big.
func (p *pass) overflow() error {
	e := &OverflowError{Tokens: p.total, Budget: p.h.Budget, Folds: p.foldRoom() - p.h.Budget + p.total}
	largest := 0
	label := ""
	for _, a := range p.atoms {
		n := p.atomSize(a)
		first := &p.entries[a.first()]
		switch {
		case !a.fixed:
			e.Open += n
		case first.Kind == Fixed && !first.Pinned:
			e.Fixed += n
		default:
			e.Pinned += n
		}
	}
	for i, n := range p.sizes {
		if n > largest {
			largest, label = n, p.entries[i].label()
		}
	}
	for _, part := range []struct {
		name   string
		tokens int
	}{{"fixed", e.Fixed}, {"pinned", e.Pinned}, {"folds", e.Folds}, {"open turn", e.Open}} {
		if part.tokens > e.PartTokens {
			e.Part, e.PartTokens = part.name, part.tokens
		}
	}
	e.Largest, e.LargestTokens = label, largest
	if 2*largest > p.h.Budget && label != "" {
		e.Part, e.PartTokens = label, largest
	}
	return e
}
