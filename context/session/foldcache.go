package session

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// maxCachedFoldBytes bounds the folds that a log remembers: those of about a
// hundred long sessions.
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

// of returns what is known of a session; nothing when nothing is.
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

// with returns the folds of all numbers; read are those of the missing ones, in
// order.
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

// live returns the folds of some numbers, in a slice that is the caller's.
func (l *Log) live(ctx context.Context, j journal, numbers []uint64) ([]history.Fold, error) {
	cached := l.folds.of(j)
	if slices.Equal(numbers, cached.numbers) {
		return slices.Clone(cached.folds), nil
	}
	// What a state names is never changed or deleted, so that this needs no
	// snapshot.
	read, err := j.folds(ctx, l.engine, cached.missing(numbers))
	if err != nil {
		return nil, err
	}
	folds := cached.with(numbers, read)
	l.folds.keep(j, numbers, folds)
	return slices.Clone(folds), nil
}
