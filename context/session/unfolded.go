package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// How Unfolded reads.
const (
	// readAcross is how many folded entries are read rather than sought past: a
	// seek costs about as much as reading so many. It is never more than what is
	// yielded before them.
	readAcross = 4
	// shortStretch is how many entries are fetched by their keys, together with
	// those of other short stretches, rather than each stretch by a seek.
	shortStretch = 8
	// maxFetched bounds the entries that are fetched at once, and with that the
	// memory that they take.
	maxFetched = 64
)

// Unfolded yields the entries of a session that stand in none of the folds, in
// order. It does not read what is folded, so it takes as long as what it yields,
// and a little for each stretch. An error comes last, with a zero Entry.
func (l *Log) Unfolded(ctx context.Context, scope kv.Scope, session string, folds []history.Fold) iter.Seq2[Entry, error] {
	folded := covered(folds)
	return func(yield func(Entry, error) bool) {
		var wanted []uint64 // positions to fetch before what is scanned next
		for _, s := range stretches(folded) {
			if s.Last-s.First < shortStretch {
				wanted = appendUnfolded(wanted, s, folded)
				if len(wanted) < maxFetched {
					continue
				}
			}
			if !l.fetch(ctx, scope, session, wanted, yield) {
				return
			}
			wanted = wanted[:0]
			if s.Last-s.First >= shortStretch && !all(l.scan(ctx, scope, session, s, folded), yield) {
				return
			}
		}
		l.fetch(ctx, scope, session, wanted, yield)
	}
}

// appendUnfolded appends the positions of a stretch that are not in the spans.
func appendUnfolded(dst []uint64, s history.Span, folded []history.Span) []uint64 {
	for p := s.First; p <= s.Last; p++ {
		if !within(folded, p) {
			dst = append(dst, p)
		}
	}
	return dst
}

// all yields a sequence and tells whether to go on behind it.
func all(entries iter.Seq2[Entry, error], yield func(Entry, error) bool) bool {
	for e, err := range entries {
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// fetch yields the entries of some positions that are there, and tells whether
// to go on.
func (l *Log) fetch(ctx context.Context, scope kv.Scope, id string, positions []uint64, yield func(Entry, error) bool) bool {
	if len(positions) == 0 {
		return true
	}
	return all(l.entriesAt(ctx, scope, id, positions), yield)
}

func (l *Log) entriesAt(ctx context.Context, scope kv.Scope, id string, positions []uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		id, err := scoped(scope, id)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		keys := numberedKeys(entryPrefix(scope, id), positions)
		values, err := l.engine.Get(ctx, kv.Log, keys...)
		if err != nil {
			yield(Entry{}, fmt.Errorf("session: read entries: %w", err))
			return
		}
		for i, value := range values {
			if value == nil {
				continue
			}
			e, err := readPair(kv.Pair{Key: keys[i], Value: value}, nil)
			if errors.Is(err, errUnknownKind) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Range yields the entries of a session from one position to another, both
// included. An error comes last, with a zero Entry.
func (l *Log) Range(ctx context.Context, scope kv.Scope, session string, first, last uint64) iter.Seq2[Entry, error] {
	return l.scan(ctx, scope, session, history.Span{First: first, Last: last}, nil)
}

// scan yields the entries of a stretch without those in some spans, which ascend
// and don't touch.
func (l *Log) scan(ctx context.Context, scope kv.Scope, id string, s history.Span, hidden []history.Span) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		id, err := scoped(scope, id)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		r := kv.Range{Start: entryKey(scope, id, s.First), End: afterKey(scope, id, s.Last)}
		for pair, err := range l.engine.Scan(ctx, kv.Log, r) {
			if err == nil && within(hidden, keyPosition(pair.Key)) {
				continue
			}
			e, err := readPair(pair, err)
			if errors.Is(err, errUnknownKind) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// covered returns the positions that stand in folds: spans that ascend and don't
// touch.
func covered(folds []history.Fold) []history.Span {
	var all []history.Span
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

// within tells whether a position is in one of the spans, which ascend.
func within(spans []history.Span, position uint64) bool {
	at, _ := slices.BinarySearchFunc(spans, position, func(s history.Span, p uint64) int { return cmp.Compare(s.Last, p) })
	return at < len(spans) && spans[at].First <= position
}

// stretches returns what has to be scanned to see everything that is not
// folded.
func stretches(folded []history.Span) []history.Span {
	var scans []history.Span
	next := uint64(1)
	for _, s := range folded {
		if s.First > next {
			scans = reach(scans, history.Span{First: next, Last: s.First - 1})
		}
		if s.Last == math.MaxUint64 {
			return scans
		}
		next = s.Last + 1
	}
	return reach(scans, history.Span{First: next, Last: math.MaxUint64})
}

// reach adds a stretch, or makes the last one reach across what is folded
// between the two.
func reach(scans []history.Span, s history.Span) []history.Span {
	if len(scans) == 0 {
		return append(scans, s)
	}
	before := &scans[len(scans)-1]
	if s.First-before.Last-1 > min(readAcross, before.Last-before.First+1) {
		return append(scans, s)
	}
	before.Last = s.Last
	return scans
}
