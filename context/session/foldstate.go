package session

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// foldState says which entries of a journal count.
type foldState struct {
	version        uint64   // number of the journal's last entry
	live           []uint64 // numbers of the folds that stand in prompts, ascending
	marks          map[string]history.Mark
	batch, through uint64
	given          uint64 // highest number that a batch was given
	since          uint64
	change         uint64 // first entry of the last change that was not undone, 0 for none
	gone           uint64 // the last entry that Delete took
}

// begin returns a change of so many entries, which are the next ones.
func (s *foldState) begin(entries int) *undoneChange {
	return &undoneChange{before: s.change, entries: entries, batch: s.batch, through: s.through}
}

// fold takes a batch in, whose entries were written.
func (s *foldState) fold(c *undoneChange, made []history.Fold) {
	s.change = s.version + 1 - uint64(len(made))
	s.live = without(s.live, c.superseded)
	for i := range made {
		s.live = append(s.live, s.change+uint64(i))
	}
	s.batch = made[0].Batch
	s.given = s.batch
}

// mark takes a moved mark in, whose entry was written.
func (s *foldState) mark(preset string, to history.Mark) {
	s.change = s.version
	s.setMark(preset, to)
}

func (s *foldState) setMark(preset string, to history.Mark) {
	if s.marks == nil {
		s.marks = make(map[string]history.Mark)
	}
	s.marks[preset] = to
}

// undo takes the last change back, given its entries.
func (s *foldState) undo(entries []journalEntry) (Undone, error) {
	first := entries[0]
	c := first.change
	var u Undone
	switch first.kind {
	case kindFold:
		u.Batch = s.batch
		own := make([]uint64, 0, len(entries))
		for _, e := range entries {
			f, err := e.fold()
			if err != nil {
				return Undone{}, err
			}
			u.Refs = append(u.Refs, f.Refs...)
			own = append(own, e.number)
		}
		u.Refs = distinct(u.Refs)
		s.live = append(without(s.live, own), c.superseded...)
		slices.Sort(s.live)
	case kindMark:
		preset, _, err := decodeMark(first.body)
		if err != nil {
			return Undone{}, err
		}
		if c.mark != nil {
			s.marks[preset] = *c.mark
		} else {
			delete(s.marks, preset)
		}
	default:
		return Undone{}, fmt.Errorf("%w: entry %d of the journal is no change", ErrDamaged, first.number)
	}
	s.change, s.batch, s.through = c.before, c.batch, c.through
	return u, nil
}

// without returns numbers without some of them; both ascend.
func without(numbers, gone []uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool {
		_, found := slices.BinarySearch(gone, n)
		return found
	})
}

// distinct returns texts in order, each once.
func distinct(texts []string) []string {
	known := make(map[string]bool, len(texts))
	return slices.DeleteFunc(texts, func(text string) bool {
		was := known[text]
		known[text] = true
		return was
	})
}

// presets are the names of the marks in order.
func (s foldState) presets() []string { return slices.Sorted(maps.Keys(s.marks)) }

// maxCachedFoldBytes bounds the folds that a log caches: enough for about a hundred long
// sessions.
const maxCachedFoldBytes = 48 << 20

// foldCache remembers the live folds of sessions, so that a prompt reads only
// the state, and of a session only what is new. A journal's entry never changes
// and its number is never given again, so that nothing here can be out of date.
type foldCache struct {
	sessions *cache.Cache[journal, cachedFolds]
}

// cachedFolds are the live folds of a session. They never change.
type cachedFolds struct {
	numbers []uint64 // ascending
	folds   []history.Fold
}

func newFoldCache(bytes int) foldCache {
	return foldCache{cache.New[journal, cachedFolds](bytes)}
}

// of returns the cached state of a session; empty without one.
func (c foldCache) of(j journal) cachedFolds {
	known, _ := c.sessions.Get(j)
	return known
}

// sessionBytes is about what a session takes whose folds were all undone.
const sessionBytes = 512

// keep remembers a session's live folds in place of what was known of it.
func (c foldCache) keep(j journal, numbers []uint64, folds []history.Fold) {
	bytes := sessionBytes + len(j.session)
	for i := range folds {
		bytes += foldBytes(&folds[i])
	}
	c.sessions.Put(j, cachedFolds{numbers, folds}, bytes)
}

// foldBytes is about what a fold takes in memory.
func foldBytes(f *history.Fold) int {
	const fixed, perRef, perSpan = 300, 32, 16
	return fixed + len(f.Text) + len(f.Digest) + perRef*len(f.Refs) + perSpan*len(f.Spans)
}

// has returns the fold of a number.
func (c cachedFolds) has(number uint64) (history.Fold, bool) {
	at, found := slices.BinarySearch(c.numbers, number)
	if !found {
		return history.Fold{}, false
	}
	return c.folds[at], true
}

// missing returns the numbers that are not known.
func (c cachedFolds) missing(numbers []uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool {
		_, known := c.has(n)
		return known
	})
}

// with returns the folds of all numbers; read are the folds that the cache lacks, in order.
func (c cachedFolds) with(numbers []uint64, read []history.Fold) []history.Fold {
	all := make([]history.Fold, 0, len(numbers))
	for _, n := range numbers {
		f, known := c.has(n)
		if !known {
			f, read = read[0], read[1:]
			f.Spans, f.Refs = slices.Clip(f.Spans), slices.Clip(f.Refs)
		}
		all = append(all, f)
	}
	return all
}

// live returns the folds of some numbers, for reading only.
func (l *Log) live(ctx context.Context, j journal, numbers []uint64) ([]history.Fold, error) {
	cached := l.folds.of(j)
	if slices.Equal(numbers, cached.numbers) {
		return slices.Clip(cached.folds), nil
	}
	// What a state names is never changed or deleted, so that this needs no
	// snapshot.
	read, err := j.folds(ctx, l.engine, cached.missing(numbers))
	if err != nil {
		return nil, err
	}
	folds := cached.with(numbers, read)
	l.folds.keep(j, numbers, folds)
	return slices.Clip(folds), nil
}
