package shardkv

import (
	"bytes"
	"errors"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// scanner scans a range of a store, of all that it has.
type scanner func(store int, r kv.Range) iter.Seq2[kv.Pair, error]

// within returns the store of a range that lies in one tenant.
func (db *DB) within(r kv.Range) (store int, one bool) {
	tenant, _, found := bytes.Cut(r.Start, []byte{0})
	if !found || r.End == nil || bytes.Compare(r.End, kv.TenantRange(string(tenant)).End) > 0 {
		return 0, false
	}
	return db.m.Of(string(tenant)), true
}

// scan merges the stores. What a store that can't be reached has is missing, and the error
// comes behind what the others have; every other error ends the scan where it occurs.
func (db *DB) scan(r kv.Range, scan scanner) iter.Seq2[kv.Pair, error] {
	if store, one := db.within(r); one {
		return scan(store, r)
	}
	return func(yield func(kv.Pair, error) bool) {
		var sources []*source
		defer func() {
			for _, s := range sources {
				s.stop()
			}
		}()
		for i := range db.engines {
			s := new(source)
			s.next, s.stop = iter.Pull2(db.own(i, r, scan))
			sources = append(sources, s)
			s.advance()
		}
		for left := r.Limit; ; {
			s := first(sources, r.Reverse)
			if s == nil {
				return
			}
			if !yield(s.pair, s.err) || s.err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
			s.advance()
		}
	}
}

// source is the scan of one store, at its next pair or its error.
type source struct {
	next func() (kv.Pair, error, bool)
	stop func()
	pair kv.Pair
	err  error
	ends bool
}

func (s *source) advance() {
	var more bool
	s.pair, s.err, more = s.next()
	s.ends = !more
}

// unreached tells whether the store of a source can't be reached. One that is too old is read
// on behind the last key, so that the others may not go on without it.
func (s *source) unreached() bool {
	return errors.Is(s.err, kv.ErrUnreachable) && !errors.Is(s.err, kv.ErrTooOld)
}

// first is the source that comes next, nil at the end of all.
func first(sources []*source, reverse bool) (found *source) {
	for _, s := range sources {
		switch {
		case s.ends:
		case s.err != nil && !s.unreached():
			return s
		case found == nil, found.err != nil:
			found = s
		case s.err == nil && (bytes.Compare(s.pair.Key, found.pair.Key) < 0) != reverse:
			found = s
		}
	}
	return found
}

// own scans what the map gives to a store. What the store has of another tenant is passed
// over in one step.
func (db *DB) own(store int, r kv.Range, scan scanner) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for more := true; more; {
			more = false
			for pair, err := range scan(store, r) {
				if err == nil && db.of(pair.Key) != store {
					more = pass(&r, pair.Key)
					break
				}
				if !yield(pair, err) {
					return
				}
				if r.Limit > 0 {
					if r.Limit--; r.Limit == 0 {
						return
					}
				}
			}
		}
	}
}

// pass takes the tenant of a key, and what a scan has yielded before it, off a range. It tells
// whether anything is left.
func pass(r *kv.Range, key []byte) bool {
	tenant, _, found := bytes.Cut(key, []byte{0})
	of := kv.TenantRange(string(tenant))
	if !found {
		of = kv.Range{Start: key, End: append(bytes.Clone(key), 0)}
	}
	if r.Reverse {
		r.End = of.Start
		return true
	}
	r.Start = of.End
	return r.Start != nil
}
