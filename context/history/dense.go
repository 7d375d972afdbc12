package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// How dense folds are made.
const (
	// wholeCallBytes: a shorter call stands in its line as it was made, of a
	// longer one denseCallBytes do. denseNames of a step stand with it.
	wholeCallBytes = 160
	denseCallBytes = 60
	denseNames     = 4
	// digestTools are named with their calls.
	digestTools = 12
	// Shares of a dense fold, in percent: lines of the newest steps; of the rest
	// lines of failures, and of what is left after them numbers.
	denseStepShare   = 45
	denseSaidShare   = 45
	denseNumberShare = 30
)

// densify makes older folds denser until all folds take about limit tokens:
// the newest stay as they are within half of it, the others are made again from the digests
// of their entries.
func (p *pass) densify(limit int) error {
	stay, older := p.split(max(limit, 0) / 2)
	if len(older) == 0 {
		return nil
	}
	room := max(limit, 0) - sum(stay, (*Fold).weight)
	turns := sum(older, turnsOf)
	var made []Fold
	visible := p.namesOf(stay)
	for _, group := range p.groups(older) {
		share := room * sum(group, turnsOf) / max(turns, 1)
		if sum(group, (*Fold).weight) <= max(share, p.denseFrame()+denseLineTokens) {
			// It is small enough, or can't be smaller.
			continue
		}
		f, err := p.dense(group, visible, share)
		if err != nil {
			return err
		}
		if f != nil {
			made = append(made, *f)
		}
	}
	if len(made) > 0 {
		p.decision.Reason = cmp.Or(p.decision.Reason, ByBudget)
		p.add(made)
	}
	return nil
}

func turnsOf(f *Fold) int { return f.Turns }

// sum adds up what each has of something.
func sum[T any](all []T, of func(*T) int) (n int) {
	for i := range all {
		n += of(&all[i])
	}
	return n
}

// denseLineTokens: a dense fold has at least a line of about so many.
const denseLineTokens = 16

// denseFrame is what a dense fold takes in addition to its lines.
func (p *pass) denseFrame() int { return p.l.count(p.l.opts.Header) + p.l.opts.MessageTokens }

// split divides the live folds into the newest that take up to limit tokens,
// and the older ones.
func (p *pass) split(limit int) (stay, older []Fold) {
	at := len(p.live)
	for at > 0 && p.live[at-1].weight() <= limit && p.live[at-1].Level == LevelLines {
		at--
		limit -= p.live[at].weight()
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

// between reports whether an unfolded entry stands between two places.
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
func (p *pass) dense(group []Fold, stay *names, limit int) (*Fold, error) {
	d := newDigest()
	for i := range group {
		one, err := p.digestOf(&group[i])
		if err != nil {
			return nil, err
		}
		d.join(one)
	}
	if len(d.steps) == 0 {
		return nil, nil
	}
	d.bound()
	f := p.digested(d, stay, limit, p.summaryOf(group))
	tokens := 0
	for i := range group {
		old := &group[i]
		tokens += old.weight()
		f.Before += old.Before
		f.Original += max(old.Original, old.Before)
		f.Turns += old.Turns
		f.Calls += old.Calls
		f.Through = max(f.Through, old.Through)
		f.Refs = append(f.Refs, old.Refs...)
	}
	if f.weight() >= tokens {
		return nil, nil
	}
	f.Refs = distinctRefs(f.Refs)
	f.Refs = f.Refs[max(len(f.Refs)-maxDenseRefs, 0):]
	f.Cuts = f.Calls
	f.Reason = cmp.Or(p.decision.Reason, ByBudget)
	f.Digest = string(d.encode())
	for i := range group {
		f.cover(group[i].Spans)
	}
	return &f, nil
}

// digested is a fold of a digest, without its entries, of at most limit tokens
// if that can be.
func (p *pass) digested(d *digest, stay *names, limit int, summary []string) Fold {
	room := limit - p.denseFrame()
	for _, text := range summary {
		room -= p.l.count(text)
	}
	var f Fold
	for range denseAttempts {
		lines := slices.Concat(summary, p.writer(stay).digest(d, max(room, 0)))
		f = p.newFold(LevelDense, p.l.opts.Header, lines)
		if f.Tokens <= limit || room <= 0 {
			break
		}
		// Tokens may straddle the parts that were counted apart.
		room -= f.Tokens - limit
	}
	return f
}

// denseAttempts are made at a dense fold that is over its limit.
const denseAttempts = 3

// maxDenseRefs bounds the references of a dense fold, the newest: it names all
// others as a range, and would be read with every prompt.
const maxDenseRefs = 100

// digestOf returns a fold's digest, made of its entries where it has none.
func (p *pass) digestOf(f *Fold) (*digest, error) {
	if f.Digest != "" {
		if d, err := decodeDigest([]byte(f.Digest)); err == nil {
			return d, nil
		}
	}
	entries, err := p.originals(f)
	if err != nil {
		return nil, err
	}
	d := newDigest()
	for _, a := range atoms(entries) {
		d.add(entries, a, excerpt.Identifiers)
	}
	d.bound()
	return d, nil
}

// maxDigested bounds the entries of one fold that are read again, the newest,
// so that it takes no longer in a session of ten thousand steps.
const maxDigested = 1500

// originals returns the newest entries of a fold.
func (p *pass) originals(f *Fold) ([]Entry, error) {
	from, to := f.first(), f.last()
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
		if all[i].Position >= from && f.Holds(all[i].Position) {
			entries = append(entries, all[i])
		}
	}
	return entries, nil
}

// digest returns the lines of a dense fold: short lines for the newest steps,
// and before them one summary of all.
func (w *writer) digest(d *digest, limit int) []string {
	left := limit * denseStepShare / 100
	at := len(d.steps)
	var lines []string
	for at > 0 {
		line := w.short(&d.steps[at-1])
		if left -= w.count(line) + 1; left < 0 {
			break
		}
		w.seen.add(line)
		lines = append(lines, line)
		at--
	}
	slices.Reverse(lines)
	rest := limit - limit*denseStepShare/100 + max(left, 0)
	return append([]string{w.summary(d, d.steps[:at], rest)}, lines...)
}

// short is a step in one line: the calls, how they ended, and the best of what
// they named.
func (w *writer) short(s *digestStep) string {
	line := s.ref
	for _, call := range s.calls {
		if len(call) > wholeCallBytes {
			call = text.Head(call, denseCallBytes) + text.Ellipsis
		}
		line = joined(line, inline(call))
	}
	if s.words != "" {
		line = joined(line, "said: "+inline(s.words))
	}
	if s.failed {
		line += ResultMark + " failed"
	}
	var names []string
	for _, name := range s.names {
		if len(names) < denseNames && !w.seen.has(name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		line += ResultMark + " " + strings.Join(names, " ")
	}
	for _, said := range s.said {
		if !w.seen.hasLine(said) {
			line += quoted(said)
		}
	}
	return line
}

// summary covers all steps in about limit tokens: how many calls of which
// tools, how many failed, the newest lines that say why, and the best of the names in them.
// older are the steps without a separate line.
func (w *writer) summary(d *digest, older []digestStep, limit int) string {
	text := d.first + "–" + d.last + ": " + toolCounts(d.tools)
	if d.failed > 0 {
		text += fmt.Sprintf(", %d failed", d.failed)
	}
	said := slices.Clone(d.said)
	for i := range older {
		said = append(said, older[i].said...)
	}
	reasons := w.newest(said, limit*denseSaidShare/100)
	names := w.best(d.names.Best(), limit-w.count(text)-w.count(reasons))
	return joined(text+".", names) + reasons
}

// best returns the best names that are not shown yet in at most limit tokens.
func (w *writer) best(ranked []excerpt.Identifier, limit int) string {
	unseen := slices.DeleteFunc(slices.Clone(ranked), func(id excerpt.Identifier) bool { return w.seen.has(id.Text) })
	numbers := slices.DeleteFunc(slices.Clone(unseen), func(id excerpt.Identifier) bool { return id.Class != excerpt.Number })
	none := newVisible()
	first := w.within(numbers, none, limit*denseNumberShare/100)
	unseen = slices.DeleteFunc(unseen, func(id excerpt.Identifier) bool { return id.Class == excerpt.Number })
	rest := w.within(unseen, none, limit-w.count(first))
	if first == "" || rest == "" {
		return first + rest
	}
	return first + classSeparator + rest
}

// within returns as many of the best names as take at most limit tokens.
func (w *writer) within(ranked []excerpt.Identifier, seen *visible, limit int) string {
	// Names take about this many tokens each; the limit decides.
	for n := min(limit/denseNameTokens, len(ranked)); n > 0; {
		names := pick(ranked, n, n*pathFactor, seen)
		got := w.count(names)
		if got <= limit {
			return names
		}
		n = min(n*limit/got, n-1)
	}
	return ""
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
		kept = append(kept, quoted(text))
	}
	slices.Reverse(kept)
	return strings.Join(kept, "")
}

// denseNameTokens is less than what a name takes, so that the first attempt is
// too long rather than too short.
const denseNameTokens = 3

func toolCounts(tools map[string]int) string {
	names := toolsByCount(tools)
	var parts []string
	for _, name := range names[:min(len(names), digestTools)] {
		parts = append(parts, inline(fmt.Sprintf("%d× %s", tools[name], name)))
	}
	if left := len(names) - digestTools; left > 0 {
		parts = append(parts, fmt.Sprintf("%d other tools", left))
	}
	return strings.Join(parts, ", ")
}
