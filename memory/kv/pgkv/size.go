package pgkv

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// countedPairs is how many pairs of a range are counted. A larger one is estimated.
	countedPairs = 4096
	// sampledPages is how many pages of a table are read for that: 4 MiB of 8 KiB each.
	sampledPages = 512
	// sampleLife is how long a sample is used, by all that ask for sizes.
	sampleLife = 5 * time.Second
	// largeValue is from which size on a value of the blobs keyspace is not counted.
	largeValue = 4 << 10
)

// samples has a sample of each keyspace's table.
type samples struct {
	mu  sync.Mutex              // held while a sample is read, which others wait for
	all map[kv.Keyspace]*sample // guarded by mu
}

// sample is what some pages of a table hold.
type sample struct {
	at    time.Time
	keys  [][]byte // in order
	sizes []int64  // sizes[i] is that of the first i pairs, by key order
	// scale is by how much the table is larger than what was read.
	scale float64
}

// Size is kv.Sizer's: what is there, without what the server has not cleaned up yet. A
// small range is counted, and of a larger one the part that it has of some pages of the
// table.
func (db *DB) Size(ctx context.Context, ks kv.Keyspace, r kv.Range) (int64, error) {
	if err := db.enter(ctx); err != nil {
		return 0, err
	}
	defer db.users.Leave()
	if int(ks) >= len(db.sql) {
		return 0, fmt.Errorf("%w: keyspace %d", kv.ErrBadScope, ks)
	}
	var pairs, size int64
	most := int64(1) << 62
	if ks == kv.Blobs {
		most = largeValue
	}
	if err := db.calls.QueryRow(ctx, db.sql[ks].count, from(r), r.End, most, countedPairs).Scan(&pairs, &size); err != nil {
		return 0, db.reading(err)
	}
	if pairs < countedPairs {
		return size, nil
	}
	s, err := db.sampleOf(ctx, ks, most)
	if err != nil {
		return 0, err
	}
	return max(size, s.size(r)), nil
}

// Free is kv.Sizer's: the server's room is unknown.
func (db *DB) Free() (int64, bool) { return 0, false }

// size is about how many bytes a range of the table has.
func (s *sample) size(r kv.Range) int64 {
	first, _ := slices.BinarySearchFunc(s.keys, from(r), bytes.Compare)
	end := len(s.keys)
	if r.End != nil {
		end, _ = slices.BinarySearchFunc(s.keys, r.End, bytes.Compare)
	}
	if end <= first {
		return 0
	}
	return int64(float64(s.sizes[end]-s.sizes[first]) * s.scale)
}

// sampleOf returns a sample of a table that is not older than sampleLife.
func (db *DB) sampleOf(ctx context.Context, ks kv.Keyspace, most int64) (*sample, error) {
	db.samples.mu.Lock()
	defer db.samples.mu.Unlock()
	if s := db.samples.all[ks]; s != nil && time.Since(s.at) < sampleLife {
		return s, nil
	}
	var pages int64
	if err := db.calls.QueryRow(ctx, tablePages, ks.String()).Scan(&pages); err != nil {
		return nil, db.reading(err)
	}
	percent := min(100, 100*float64(sampledPages)/float64(max(pages, 1)))
	rows, err := db.calls.Query(ctx, db.sql[ks].sample, percent, most)
	if err != nil {
		return nil, db.reading(err)
	}
	s := &sample{at: time.Now(), sizes: []int64{0}, scale: 100 / percent}
	var key []byte
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&key, &size}, func() error {
		s.keys, s.sizes = append(s.keys, bytes.Clone(key)), append(s.sizes, s.sizes[len(s.sizes)-1]+size)
		return nil
	})
	if err != nil {
		return nil, db.reading(err)
	}
	if db.samples.all == nil {
		db.samples.all = make(map[kv.Keyspace]*sample)
	}
	db.samples.all[ks] = s
	return s, nil
}
