//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

// ctxEvery is after how many pairs a scan looks at its context: often enough
// to end within microseconds, seldom enough to cost nothing.
const ctxEvery = 64

// Bounds of what a scan copies at once, so that it does not take a lock for each pair.
// It begins with one pair and doubles: a loop that ends early has little copied in
// vain.
const (
	maxAhead      = 4
	maxAheadBytes = 32 << 10
)

// Scan is kv.Reader's. A scan sees the moment at which its loop began for as long as
// a snapshot lives.
func (db *DB) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		if err := db.enter(ctx); err != nil {
			yield(kv.Pair{}, err)
			return
		}
		defer db.users.Leave()
		db.scan(ctx, ks, r, yield)
	}
}

// scan yields the pairs of a range, and at the end the error if there is one. The
// caller is a user of the DB.
func (db *DB) scan(ctx context.Context, ks kv.Keyspace, r kv.Range, yield func(kv.Pair, error) bool) {
	for {
		now := time.Now()
		c, err := db.latest.cursor(ks, r, now, now.Add(db.life))
		if err != nil {
			yield(kv.Pair{}, err)
			return
		}
		if tooOld := c.run(ctx, yield); !tooOld {
			return
		}
		r = c.rest()
	}
}

// cursor is a native iterator over one range with all that belongs to it. It ends by
// itself when it is too old, also while the loop that it yields to stands still.
type cursor struct {
	view  view
	ks    kv.Keyspace
	entry lifetime.Holding
	r     kv.Range

	mu      sync.Mutex // guards what follows; held in native calls, never while the loop runs
	it      *grocksdb.Iterator
	reads   *grocksdb.ReadOptions
	pins    runtime.Pinner
	ahead   [maxAhead]kv.Pair
	yielded int
	seen    int
	reached []byte // where the iterator stood when it became too old
}

// cursor opens one, whose run closes it; nil for a range that selects nothing. RocksDB keeps the bounds by address for as
// long as the iterator lives, so they are pinned copies.
func (v view) cursor(ks kv.Keyspace, r kv.Range, now, until time.Time) (*cursor, error) {
	family, err := v.family(ks)
	if err != nil || r.End != nil && bytes.Compare(r.Start, r.End) >= 0 {
		return nil, err
	}
	c := &cursor{view: v, ks: ks, r: r, reads: grocksdb.NewDefaultReadOptions()}
	if v.at != nil {
		c.reads.SetSnapshot(v.at)
	}
	c.reads.SetFillCache(!v.sweeping)
	if len(r.Start) > 0 {
		c.reads.SetIterateLowerBound(c.pinned(r.Start))
	}
	if r.End != nil {
		c.reads.SetIterateUpperBound(c.pinned(r.End))
	}
	c.it = v.rocks.NewIteratorCF(c.reads, family)
	v.open.Add(&c.entry, now, until, c.expire)
	return c, nil
}

func (c *cursor) pinned(bound []byte) []byte {
	bound = bytes.Clone(bound)
	c.pins.Pin(&bound[0])
	return bound
}

// expire closes the cursor because it is too old.
func (c *cursor) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.it != nil && c.seen > 0 && c.it.Valid() {
		c.reached = own(c.it.Key().Data())
	}
	c.closeLocked()
}

// rest is what is left of the range of a cursor that became too old.
func (c *cursor) rest() kv.Range {
	r := c.r
	if r.Limit > 0 {
		r.Limit -= c.yielded
	}
	switch {
	case c.reached == nil:
	case r.Reverse:
		r.End = c.reached
	default:
		r.Start = append(c.reached, 0)
	}
	return r
}

// close releases what RocksDB holds for the cursor. Closing twice is harmless.
func (c *cursor) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked()
}

func (c *cursor) closeLocked() {
	if c.it == nil {
		return
	}
	c.it.Close()
	c.it = nil
	c.reads.Destroy()
	c.pins.Unpin()
}

// run yields the pairs, and at the end the error if there is one, then closes the
// cursor. It reports whether it ended because the cursor was too old.
func (c *cursor) run(ctx context.Context, yield func(kv.Pair, error) bool) (tooOld bool) {
	if c == nil {
		return false
	}
	defer c.close()
	defer c.view.open.Remove(&c.entry)
	for wanted := 1; ; wanted = min(2*wanted, maxAhead) {
		pairs, more, err := c.next(ctx, wanted)
		for _, pair := range pairs {
			if !yield(pair, nil) {
				return false
			}
		}
		if !more {
			if err != nil && !errors.Is(err, kv.ErrTooOld) {
				yield(kv.Pair{}, c.view.damaged(c.ks, err))
			}
			return errors.Is(err, kv.ErrTooOld)
		}
	}
}

// next returns copies of the next pairs, as many as wanted unless they are large, and
// whether others may follow. The slice is valid until the next call.
func (c *cursor) next(ctx context.Context, wanted int) (pairs []kv.Pair, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.r.Limit > 0 && c.yielded == c.r.Limit {
		return nil, false, nil
	}
	if c.it == nil {
		return nil, false, kv.ErrTooOld
	}
	for bytes := 0; len(pairs) < wanted && bytes < maxAheadBytes; {
		if c.r.Limit > 0 && c.yielded == c.r.Limit {
			return pairs, false, nil
		}
		if c.move(); !c.it.Valid() {
			if err = c.it.Err(); err != nil {
				err = fmt.Errorf("scan: %w", readError(err))
			}
			return pairs, false, err
		}
		if c.seen%ctxEvery == 1 {
			if err := ctx.Err(); err != nil {
				return pairs, false, err
			}
		}
		key := c.it.Key().Data()
		if isReserved(key) {
			continue
		}
		pair := kv.Pair{Key: own(key), Value: own(c.it.Value().Data())}
		bytes += len(pair.Key) + len(pair.Value)
		c.yielded++
		c.ahead[len(pairs)] = pair
		pairs = c.ahead[:len(pairs)+1]
	}
	return pairs, true, nil
}

func (c *cursor) move() {
	c.seen++
	switch {
	case c.seen > 1 && c.r.Reverse:
		c.it.Prev()
	case c.seen > 1:
		c.it.Next()
	case c.r.Reverse:
		c.it.SeekToLast()
	default:
		c.it.SeekToFirst()
	}
}
