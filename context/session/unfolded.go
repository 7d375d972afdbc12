package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// How Unfolded reads what it does not know.
const (
	// shortStretch is how many entries in a row are fetched by key, together with other
	// short stretches, rather than with a seek for each stretch.
	shortStretch = 8
	// maxFetched bounds the entries that are fetched at once, and with that the
	// memory that they take.
	maxFetched = 64
)

// Unfolded yields the entries of a session that stand in none of the folds, in
// order. It reads neither folded entries nor entries that an earlier call read, so its cost
// is the new entries, plus a little for each stretch. The entries are for reading only. An
// error comes last, with a zero Entry.
func (l *Log) Unfolded(ctx context.Context, scope kv.Scope, session string, folds []history.Fold) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r, err := l.reading(ctx, scope, session)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		folded := covered(folds, r.gone)
		defer r.keep(folded)
		for _, s := range stretches(folded, r.last) {
			if !r.stretch(ctx, s, yield) {
				return
			}
		}
		r.fetch(ctx, yield)
	}
}

// tailReader reads a session's entries as far as they are not known.
type tailReader struct {
	log   *Log
	of    journal
	known *cachedEntries
	// last is the position of the newest entry, gone that of the newest deleted one.
	last, gone uint64
	// wanted are positions to fetch before the next entry is yielded.
	wanted []uint64
}

// reading begins to read a session, up to where its head says that it ends.
func (l *Log) reading(ctx context.Context, scope kv.Scope, session string) (*tailReader, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return nil, err
	}
	h, err := l.head(ctx, scope, session)
	if err != nil {
		return nil, err
	}
	j := journal{scope, session}
	return &tailReader{log: l, of: j, known: l.entryCache.of(j), last: h.last, gone: h.gone}, nil
}

// keep remembers what was read.
func (r *tailReader) keep(folded []history.Span) { r.log.entryCache.keep(r.of, r.known, folded) }

// stretch yields the entries of a stretch, and reports whether to go on. The last of them
// may be left wanted.
func (r *tailReader) stretch(ctx context.Context, s history.Span, yield func(Entry, error) bool) bool {
	for p := s.First; p <= s.Last; p++ {
		if e, known := r.known.at(p); known {
			if !r.fetch(ctx, yield) || !yield(e, nil) {
				return false
			}
			continue
		}
		first := p
		for p < s.Last && !r.knows(p+1) {
			p++
		}
		if !r.missing(ctx, history.Span{First: first, Last: p}, yield) {
			return false
		}
	}
	return true
}

func (r *tailReader) knows(position uint64) bool {
	_, known := r.known.at(position)
	return known
}

// missing yields a stretch that is not known, or leaves it wanted.
func (r *tailReader) missing(ctx context.Context, s history.Span, yield func(Entry, error) bool) bool {
	if s.Last-s.First >= shortStretch {
		return r.fetch(ctx, yield) && all(r.log.scan(ctx, r.of.scope, r.of.session, s, r.known), yield)
	}
	for p := s.First; p <= s.Last; p++ {
		r.wanted = append(r.wanted, p)
	}
	return len(r.wanted) < maxFetched || r.fetch(ctx, yield)
}

// all yields a sequence and reports whether to go on behind it.
func all(entries iter.Seq2[Entry, error], yield func(Entry, error) bool) bool {
	for e, err := range entries {
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// fetch yields the wanted entries that are there, and reports whether to go on.
func (r *tailReader) fetch(ctx context.Context, yield func(Entry, error) bool) bool {
	if len(r.wanted) == 0 {
		return true
	}
	wanted := r.wanted
	r.wanted = r.wanted[:0]
	keys := numberedKeys(entryPrefix(r.of.scope, r.of.session), wanted)
	values, err := r.log.engine.Get(ctx, kv.Log, keys...)
	if err != nil {
		return yield(Entry{}, fmt.Errorf("session: read entries: %w", err))
	}
	for i, value := range values {
		if value == nil {
			continue
		}
		e, err := readPair(kv.Pair{Key: keys[i], Value: value}, nil)
		if errors.Is(err, errUnknownKind) {
			continue
		}
		if err == nil {
			r.known.add(e, len(value))
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// Range yields the entries of a session from one position to another, both
// included. An error comes last, with a zero Entry.
func (l *Log) Range(ctx context.Context, scope kv.Scope, session string, first, last uint64) iter.Seq2[Entry, error] {
	return l.scan(ctx, scope, session, history.Span{First: first, Last: last}, nil)
}

// scan yields the entries of a stretch, and adds them to the cached state of the session; nil
// is not added to.
func (l *Log) scan(ctx context.Context, scope kv.Scope, id string, s history.Span, known *cachedEntries) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		id, err := scoped(scope, id)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		r := kv.Range{Start: entryKey(scope, id, s.First), End: afterKey(scope, id, s.Last)}
		for pair, err := range l.engine.Scan(ctx, kv.Log, r) {
			e, err := readPair(pair, err)
			if errors.Is(err, errUnknownKind) {
				continue
			}
			if err == nil && known != nil {
				known.add(e, len(pair.Value))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// covered returns the positions that stand in folds, or are gone: spans that ascend and
// don't touch.
func covered(folds []history.Fold, gone uint64) []history.Span {
	var all []history.Span
	if gone > 0 {
		all = append(all, history.Span{First: firstPosition, Last: gone})
	}
	for i := range folds {
		all = append(all, folds[i].Spans...)
	}
	slices.SortFunc(all, func(a, b history.Span) int { return cmp.Compare(a.First, b.First) })
	joined := all[:0]
	for _, s := range all {
		if last := len(joined) - 1; last >= 0 && s.First-1 <= joined[last].Last {
			joined[last].Last = max(joined[last].Last, s.Last)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// within reports whether a position is in one of the spans, which ascend.
func within(spans []history.Span, position uint64) bool {
	at, _ := slices.BinarySearchFunc(spans, position, func(s history.Span, p uint64) int { return cmp.Compare(s.Last, p) })
	return at < len(spans) && spans[at].First <= position
}

// stretches returns the unfolded spans, up to a position.
func stretches(folded []history.Span, last uint64) []history.Span {
	var left []history.Span
	next := uint64(1)
	for _, s := range folded {
		if s.First > last || s.Last >= last {
			if s.First > next {
				left = append(left, history.Span{First: next, Last: min(s.First-1, last)})
			}
			return left
		}
		if s.First > next {
			left = append(left, history.Span{First: next, Last: s.First - 1})
		}
		next = s.Last + 1
	}
	if next <= last {
		left = append(left, history.Span{First: next, Last: last})
	}
	return left
}

const (
	// maxCachedEntryBytes bounds the entries that a log caches: enough for some hundred
	// long sessions. When it is full, entries of the tenant with the largest share are
	// evicted.
	maxCachedEntryBytes = 64 << 20
	// maxSessionEntryBytes bounds the entries of one session: a prompt of many times the
	// window of any model.
	maxSessionEntryBytes = maxCachedEntryBytes / 8
	// entryBytes is about what an entry takes in addition to its stored form.
	entryBytes = 512
)

// entryCache remembers the entries that prompts of sessions read, so that the next prompt
// reads and decodes only what is new. An entry never changes and its position is never
// given again, so that nothing here can be out of date: readers go by the head of
// the session, which says which entries there are.
type entryCache struct {
	sessions *cache.Fair[string, journal, *cachedEntries]
}

func newEntryCache(bytes int) entryCache {
	return entryCache{cache.NewFair[string, journal, *cachedEntries](bytes)}
}

// of returns the cached state of a session.
func (c entryCache) of(j journal) *cachedEntries {
	known, ok := c.sessions.Get(j.scope.Tenant, j)
	if !ok {
		known = &cachedEntries{entries: make(map[uint64]cachedEntry)}
	}
	return known
}

// keep stores the additions to the cached state of a session, without the entries in spans
// if they take much.
func (c entryCache) keep(j journal, known *cachedEntries, folded []history.Span) {
	if size, changed := known.trim(folded); changed {
		c.sessions.Put(j.scope.Tenant, j, known, size)
	}
}

// Forget drops what the log remembers of scopes whose entries somebody has erased: their
// positions are given again.
func (l *Log) Forget(tenant string, match func(kv.Scope) bool) {
	of := func(j journal) bool { return j.scope.Tenant == tenant && match(j.scope) }
	l.entryCache.sessions.DeleteFunc(tenant, of)
	l.folds.sessions.DeleteFunc(of)
}

// cachedEntries are entries of a session. What they hold is shared, and never changed.
type cachedEntries struct {
	mu      sync.Mutex // guards the fields below
	entries map[uint64]cachedEntry
	bytes   int
	// changed says that the cache does not know its weight yet.
	changed bool
}

type cachedEntry struct {
	entry Entry
	bytes int
}

// at returns the entry at a position.
func (c *cachedEntries) at(position uint64) (Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[position]
	return e.entry, ok
}

// add adds an entry that takes so many bytes in its stored form, if there is room.
func (c *cachedEntries) add(e Entry, stored int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := stored + entryBytes
	if _, known := c.entries[e.Position]; known || c.bytes+size > maxSessionEntryBytes {
		return
	}
	c.entries[e.Position] = cachedEntry{e, size}
	c.bytes += size
	c.changed = true
}

// trim drops what stands in spans if more than half of the room is taken. It returns
// what the rest takes, and whether that has changed.
func (c *cachedEntries) trim(folded []history.Span) (bytes int, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(folded) > 0 && c.bytes > maxSessionEntryBytes/2 {
		for position, e := range c.entries {
			if within(folded, position) {
				delete(c.entries, position)
				c.bytes -= e.bytes
				c.changed = true
			}
		}
	}
	changed = c.changed
	c.changed = false
	return sessionBytes + c.bytes, changed
}
