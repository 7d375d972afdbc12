package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// How dense folds are made.
const (
	// denseHeader begins a dense fold, behind the header of all folds.
	denseCallBytes  = 80
	denseErrorBytes = 160
	denseNames      = 8
	// digestTools are named with their calls.
	digestTools = 12
)

// densify makes older folds denser until all folds take about limit tokens:
// the newest stay as they are within half of it, the others are made again
// from their entries.
func (p *pass) densify(limit int) error {
	stay, older := p.split(max(limit, 0) / 2)
	if len(older) == 0 {
		return nil
	}
	room := max(limit, 0)
	for i := range stay {
		room -= stay[i].Tokens
	}
	turns := 0
	for i := range older {
		turns += older[i].Turns
	}
	var made []Fold
	for _, group := range p.groups(older) {
		f, err := p.dense(group, stay, room*groupTurns(group)/max(turns, 1))
		if err != nil {
			return err
		}
		if f != nil {
			made = append(made, *f)
		}
	}
	if len(made) > 0 {
		if p.decision.Reason == 0 {
			p.decision.Reason = ByBudget
		}
		p.add(made)
	}
	return nil
}

func groupTurns(group []Fold) int {
	n := 0
	for i := range group {
		n += group[i].Turns
	}
	return n
}

// split divides the live folds into the newest that take up to limit tokens,
// and the older ones.
func (p *pass) split(limit int) (stay, older []Fold) {
	at := len(p.live)
	for at > 0 && p.live[at-1].Tokens <= limit && p.live[at-1].Level == LevelLines {
		at--
		limit -= p.live[at].Tokens
	}
	return p.live[at:], p.live[:at]
}

// groups puts folds together that nothing stands between.
func (p *pass) groups(folds []Fold) [][]Fold {
	var groups [][]Fold
	for i := range folds {
		if i > 0 && !p.between(folds[i-1].first(), folds[i].first()) {
			groups[len(groups)-1] = append(groups[len(groups)-1], folds[i])
			continue
		}
		groups = append(groups, []Fold{folds[i]})
	}
	return groups
}

// between tells whether an unfolded entry stands between two places.
func (p *pass) between(from, to uint64) bool {
	at, _ := slices.BinarySearchFunc(p.entries, from, func(e Entry, place uint64) int {
		if e.Position < place {
			return -1
		}
		return 1
	})
	return at < len(p.entries) && p.entries[at].Position < to
}

// dense makes one fold of a group, in about limit tokens; nil when that would
// not be shorter.
func (p *pass) dense(group, stay []Fold, limit int) (*Fold, error) {
	entries, err := p.originals(group)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	w := p.writer(stay)
	groups := atoms(entries)
	lines := w.digest(entries, groups, limit)
	if older := groupTurns(group) - len(groups); older > 0 && entries[0].Position > group[0].first() {
		lines = append([]string{fmt.Sprintf("%d turns before these", older)}, lines...)
	}
	f := p.newFold(LevelDense, p.l.opts.Header, lines)
	tokens := 0
	var refs []string
	for i := range group {
		old := &group[i]
		tokens += old.Tokens
		f.Before += old.Before
		f.Original += max(old.Original, old.Before)
		f.Turns += old.Turns
		f.Calls += old.Calls
		f.Through = max(f.Through, old.Through)
		refs = append(refs, old.Refs...)
	}
	f.Refs = distinctRefs(refs)
	f.Refs = f.Refs[max(len(f.Refs)-maxDenseRefs, 0):]
	f.Cuts = f.Calls
	f.Reason = ByBudget
	if p.decision.Reason != 0 {
		f.Reason = p.decision.Reason
	}
	if f.Tokens >= tokens {
		return nil, nil
	}
	for i := range group {
		f.cover(group[i].Spans)
	}
	return &f, nil
}

// maxDenseRefs bounds the references of a dense fold, the newest: it names all
// others as a range, and would be read with every prompt.
const maxDenseRefs = 100

// maxDigested bounds the entries that a dense fold is made of, the newest, so
// that it takes as long in a session of ten thousand steps as in one of a
// thousand. A digest has room for the names of fewer than these.
const maxDigested = 1500

// originals returns the newest entries of folds.
func (p *pass) originals(group []Fold) ([]Entry, error) {
	from, to := group[0].first(), uint64(0)
	for i := range group {
		to = max(to, group[i].last())
	}
	if to-from >= maxDigested {
		from = to - maxDigested + 1
	}
	all := p.h.Entries
	if p.h.Originals != nil {
		var err error
		if all, err = p.h.Originals(from, to); err != nil {
			return nil, fmt.Errorf("read folded entries: %w", err)
		}
	}
	var entries []Entry
	for i := range all {
		if all[i].Position >= from && held(group, all[i].Position) {
			entries = append(entries, all[i])
		}
	}
	return entries, nil
}

// digest returns the lines of a dense fold: short lines for the newest atoms
// in about half of the limit, and before them one digest of all others.
func (w *writer) digest(entries []Entry, atoms []atom, limit int) []string {
	var lines []string
	left := limit / 2
	at := len(atoms)
	for at > 0 {
		line := w.short(entries, atoms[at-1])
		if left -= w.count(line) + 1; left < 0 {
			break
		}
		w.seen.add(line)
		lines = append(lines, line)
		at--
	}
	slices.Reverse(lines)
	if at == 0 {
		return lines
	}
	return append([]string{w.summary(entries, atoms[:at], limit/2+left)}, lines...)
}

// short is an atom in one line: the beginning of the call, how it ended, and
// the best of what it named.
func (w *writer) short(entries []Entry, a atom) string {
	line := entries[a.first()].Ref
	var errs []string
	for _, i := range a.members {
		e := &entries[i]
		for _, c := range e.Calls {
			text := c.text()
			if len(text) > denseCallBytes {
				text = cutBytes(text, denseCallBytes) + "…"
			}
			line = joined(line, text)
		}
		if e.Kind == Turn && len(e.Calls) == 0 {
			line = joined(line, "said: "+firstSentence(e.Text))
		}
		if e.Kind == Turn {
			continue
		}
		if e.failed() {
			line += " → failed"
			errs = append(errs, slices.DeleteFunc(e.errorLines(), w.seen.hasLine)...)
		}
		if names := pick(Identifiers(joined(e.Output, e.Evidence)), denseNames, w.seen); names != "" {
			line += " → " + names
		}
	}
	line = strings.ReplaceAll(line, "\n", " ")
	for _, said := range errs {
		line += "\n" + said
	}
	return line
}

// summary is one digest of many atoms in about limit tokens: how many calls of
// which tools, how many failed, the newest lines that say why, and the best of
// what all of them named.
func (w *writer) summary(entries []Entry, atoms []atom, limit int) string {
	tools := make(map[string]int)
	names := newRanking()
	failed := 0
	var said []string
	for _, a := range atoms {
		for _, i := range a.members {
			e := &entries[i]
			for _, c := range e.Calls {
				tools[c.Name]++
				names.add(c.Args)
			}
			if e.failed() {
				failed++
				said = append(said, e.errorLines()...)
			}
			names.add(e.Output)
			names.add(e.Evidence)
		}
	}
	text := entries[atoms[0].first()].Ref + "–" + entries[atoms[len(atoms)-1].first()].Ref + ": " + toolCounts(tools)
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	reasons := w.newest(said, limit/3)
	ranked := names.best()
	// Names take about this many tokens each; the limit decides.
	for n := max(limit/denseNameTokens, 0); n > 0; n = n * 4 / 5 {
		full := joined(text+".", pick(ranked, n, w.seen)) + reasons
		if w.count(full) <= limit {
			return full
		}
	}
	return text
}

// newest returns the last of some lines that are not shown yet, each once and
// behind a line feed, in about limit tokens.
func (w *writer) newest(lines []string, limit int) string {
	var kept []string
	for _, text := range slices.Backward(lines) {
		if w.seen.hasLine(text) {
			continue
		}
		if limit -= w.count(text) + 1; limit < 0 {
			break
		}
		w.seen.add(text)
		kept = append(kept, "\n"+text)
	}
	slices.Reverse(kept)
	return strings.Join(kept, "")
}

// denseNameTokens is less than what a name takes, so that the first attempt is
// too long rather than too short.
const denseNameTokens = 3

func toolCounts(tools map[string]int) string {
	names := slices.SortedFunc(maps.Keys(tools), func(a, b string) int {
		if tools[a] != tools[b] {
			return tools[b] - tools[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names[:min(len(names), digestTools)] {
		parts = append(parts, fmt.Sprintf("%d× %s", tools[name], name))
	}
	if left := len(names) - digestTools; left > 0 {
		parts = append(parts, fmt.Sprintf("%d other tools", left))
	}
	return strings.Join(parts, ", ")
}
