package kv

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
)

// Tx is what a staging function sees: a snapshot, plus earlier staged writes of the same
// commit, plus its own writes. It is valid during the call only and not safe for concurrent
// use.
type Tx struct {
	base   Getter
	staged *overlay // nil: nothing
	batch  Batch
	index  overlayIndex // of batch
	// watched are the keys that Watch has read from base.
	watched []Watch
	// ahead is what ReadAhead has read from base.
	ahead map[overlayKey][]byte
}

// Getter is what a Reader and a *Tx have in common.
type Getter interface {
	Get(ctx context.Context, ks Keyspace, keys ...[]byte) ([][]byte, error)
	Scan(ctx context.Context, ks Keyspace, r Range) iter.Seq2[Pair, error]
}

// Get returns one value for each key in the order asked; nil marks a missing
// key. The caller owns the values.
func (t *Tx) Get(ctx context.Context, ks Keyspace, keys ...[]byte) ([][]byte, error) {
	if t.batch.Len() == 0 && t.staged.empty() && t.ahead == nil {
		return t.base.Get(ctx, ks, keys...)
	}
	values := make([][]byte, len(keys))
	var missing [][]byte
	var places []int
	for i, key := range keys {
		if v, ok := t.lookup(ks, key); ok {
			values[i] = bytes.Clone(v.value)
			continue
		}
		if v, ok := t.ahead[overlayKey{ks, string(key)}]; ok {
			values[i] = bytes.Clone(v)
			continue
		}
		missing, places = append(missing, key), append(places, i)
	}
	if len(missing) == 0 {
		return values, nil
	}
	found, err := t.base.Get(ctx, ks, missing...)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		values[place] = found[i]
	}
	return values, nil
}

// ReadAhead reads at once what later calls of Get ask for one by one, and keeps it until the
// staging ends: on an engine that reads slowly a snapshot does not outlive many reads.
func (t *Tx) ReadAhead(ctx context.Context, ks Keyspace, keys ...[]byte) error {
	if len(keys) == 0 {
		return nil
	}
	values, err := t.base.Get(ctx, ks, keys...)
	if err != nil {
		return err
	}
	if t.ahead == nil {
		t.ahead = make(map[overlayKey][]byte, len(keys))
	}
	for i, key := range keys {
		t.ahead[overlayKey{ks, string(key)}] = values[i]
	}
	return nil
}

// Grow makes room for so many changes more.
func (t *Tx) Grow(n int) { t.batch.Grow(n) }

// Watch is Get for a key that others write blindly (Request.Blind), which no
// guard notices: the commit is refused, and staged again, if the key has another
// value by then. The transaction keeps key.
func (t *Tx) Watch(ctx context.Context, ks Keyspace, key []byte) ([]byte, error) {
	if v, ok := t.lookup(ks, key); ok {
		return bytes.Clone(v.value), nil // this commit decides what the key has
	}
	values, err := t.base.Get(ctx, ks, key)
	if err != nil {
		return nil, err
	}
	t.watched = append(t.watched, Watch{Keyspace: ks, Key: key, Value: values[0]})
	return bytes.Clone(values[0]), nil
}

func (t *Tx) watchedBytes() int {
	size := 0
	for _, w := range t.watched {
		size += len(w.Key) + len(w.Value)
	}
	return size
}

func (t *Tx) lookup(ks Keyspace, key []byte) (overlayValue, bool) {
	if v, ok := t.index.find(&t.batch, ks, key); ok || t.staged.empty() {
		return v, ok
	}
	return t.staged.index.find(t.staged.batch, ks, key)
}

// Scan yields the pairs of a range in order, as Reader.Scan does. Writing
// while a scan runs doesn't change what the scan yields.
func (t *Tx) Scan(ctx context.Context, ks Keyspace, r Range) iter.Seq2[Pair, error] {
	changes := t.changesIn(ks, r)
	if len(changes) == 0 {
		return t.base.Scan(ctx, ks, r)
	}
	limit := r.Limit
	if limit > 0 {
		// Each change may hide one stored pair.
		r.Limit += len(changes)
	}
	return limited(merged(t.base.Scan(ctx, ks, r), changes, r.Reverse), limit)
}

// change is one overlaid key of a scan.
type change struct {
	key string
	overlayValue
}

func (t *Tx) changesIn(ks Keyspace, r Range) []change {
	var changes []change
	own := t.index.all(&t.batch)
	collect := func(from, hiddenBy map[overlayKey]overlayValue) {
		for k, v := range from {
			if k.keyspace != ks || !r.contains(k.key) {
				continue
			}
			if _, hidden := hiddenBy[k]; !hidden {
				changes = append(changes, change{k.key, v})
			}
		}
	}
	collect(own, nil)
	if !t.staged.empty() {
		collect(t.staged.index.all(t.staged.batch), own)
	}
	slices.SortFunc(changes, func(a, b change) int {
		if r.Reverse {
			a, b = b, a
		}
		return strings.Compare(a.key, b.key)
	})
	return changes
}

func (r Range) contains(key string) bool {
	return (r.Start == nil || key >= string(r.Start)) && (r.End == nil || key < string(r.End))
}

// merged yields stored pairs and changes in one order; a change wins over a
// stored pair of the same key, and a deletion yields nothing.
func merged(stored iter.Seq2[Pair, error], changes []change, reverse bool) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		next := 0
		// emitUntil yields the changes that stand before key; nil means all.
		emitUntil := func(key []byte) bool {
			for ; next < len(changes); next++ {
				c := changes[next]
				if key != nil && !before(c.key, key, reverse) {
					return true
				}
				if c.value != nil && !yield(Pair{[]byte(c.key), bytes.Clone(c.value)}, nil) {
					return false
				}
			}
			return true
		}
		for pair, err := range stored {
			if err != nil {
				yield(Pair{}, err)
				return
			}
			if !emitUntil(pair.Key) {
				return
			}
			if next < len(changes) && changes[next].key == string(pair.Key) {
				continue
			}
			if !yield(pair, nil) {
				return
			}
		}
		emitUntil(nil)
	}
}

// before reports whether key a comes before key b in scan order.
func before(a string, b []byte, reverse bool) bool {
	if reverse {
		return a > string(b)
	}
	return a < string(b)
}

func limited(seq iter.Seq2[Pair, error], limit int) iter.Seq2[Pair, error] {
	if limit <= 0 {
		return seq
	}
	return func(yield func(Pair, error) bool) {
		left := limit
		for pair, err := range seq {
			if left--; !yield(pair, err) || left == 0 {
				return
			}
		}
	}
}

// Put sets key to value. The transaction keeps both slices: never change them again,
// because later stagings may read them after the commit.
func (t *Tx) Put(ks Keyspace, key, value []byte) {
	if value == nil {
		value = []byte{}
	}
	t.batch.Put(ks, key, value)
}

// Delete removes key; a missing one is fine.
func (t *Tx) Delete(ks Keyspace, key []byte) {
	t.batch.Delete(ks, key)
}
