package vector

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// DefaultCacheBytes bounds what an Index remembers of blocks and tails:
	// enough for all of 120,000 vectors of 384 numbers, or for what a scan needs
	// of a million.
	DefaultCacheBytes = 64 << 20
	// DefaultScanLimit is how many vectors of a space a search scans. As many
	// take about three milliseconds at 384 numbers; a larger space is sorted
	// into blocks of neighbours.
	DefaultScanLimit = 200_000
)

// Options adjusts an Index. Nil and zero fields mean the defaults.
type Options struct {
	// CacheBytes bounds the memory for blocks and tails. Default
	// DefaultCacheBytes.
	CacheBytes int
	// ScanLimit is how many vectors of a space one search scans before it
	// leaves out the blocks that lie farthest from the query. Default
	// DefaultScanLimit.
	ScanLimit int
}

// Index keeps and searches the vectors of any number of scopes. It holds
// nothing but what it remembers of blocks that never change. All methods are
// safe for concurrent use.
type Index struct {
	cache     *partCache
	scanLimit int
	rooms     sync.Pool // of *searching
}

// New returns an index.
func New(opts *Options) *Index {
	x := &Index{scanLimit: DefaultScanLimit}
	limit := DefaultCacheBytes
	if opts != nil && opts.CacheBytes > 0 {
		limit = opts.CacheBytes
	}
	if opts != nil && opts.ScanLimit > 0 {
		x.scanLimit = opts.ScanLimit
	}
	x.cache = newPartCache(limit)
	x.rooms.New = func() any { return new(searching) }
	return x
}

// Add stages the vector of a document in a space. The first vector of a space
// fixes its dimension; another one is a *DimensionError. The same vector again
// changes nothing, another one takes the place of the first. The request must
// name Refs of the scope. The vector is copied.
func (x *Index) Add(ctx context.Context, tx *kv.Tx, scope kv.Scope, space string, ordinal uint32, v []float32) error {
	if err := Check(v); err != nil {
		return err
	}
	s, err := needSpace(ctx, tx, scope, space, len(v))
	if err != nil {
		return err
	}
	at := place{scope, s.number}
	key, value := at.vector(ordinal), encodeVector(v)
	before, err := tx.Get(ctx, kv.Records, key)
	if err != nil || bytes.Equal(before[0], value) {
		return err
	}
	h, err := readHead(ctx, tx, at, false)
	if err != nil {
		return err
	}
	if h.last == math.MaxUint32 {
		return ErrFull
	}
	if h.last == 0 {
		h.stamp = rand.Uint64()
	}
	h.last++
	if before[0] == nil {
		h.vectors++
	} else {
		h.discard()
	}
	tx.Put(kv.Records, key, value)
	tx.Put(kv.Index, at.tail(h.last), be32(ordinal))
	tx.Put(kv.Index, at.head(), h.encode())
	return nil
}

// Remove stages that a document has no vector in the space; if it has none, it
// changes nothing. The request must name Refs of the scope.
func (x *Index) Remove(ctx context.Context, tx *kv.Tx, scope kv.Scope, space string, ordinal uint32) error {
	s, ok, err := findSpace(ctx, tx, scope, space)
	if err != nil || !ok {
		return err
	}
	return remove(ctx, tx, place{scope, s.number}, ordinal)
}

func remove(ctx context.Context, tx *kv.Tx, at place, ordinal uint32) error {
	key := at.vector(ordinal)
	before, err := tx.Get(ctx, kv.Records, key)
	if err != nil || before[0] == nil {
		return err
	}
	h, err := readHead(ctx, tx, at, false)
	if err != nil {
		return err
	}
	h.vectors--
	h.discard()
	tx.Delete(kv.Records, key)
	tx.Put(kv.Index, at.head(), h.encode())
	return nil
}

// RemoveAll stages that a document has no vector in any space.
func (x *Index) RemoveAll(ctx context.Context, tx *kv.Tx, scope kv.Scope, ordinal uint32) error {
	d, err := readDirectory(ctx, tx, scope)
	if err != nil {
		return err
	}
	for _, s := range d.spaces {
		if err := remove(ctx, tx, place{scope, s.number}, ordinal); err != nil {
			return err
		}
	}
	return nil
}

// Move stages the move of a document's vectors, in all spaces, to another document.
func (x *Index) Move(ctx context.Context, tx *kv.Tx, scope kv.Scope, from, to uint32) error {
	d, err := readDirectory(ctx, tx, scope)
	if err != nil {
		return err
	}
	for _, s := range d.spaces {
		at := place{scope, s.number}
		values, err := tx.Get(ctx, kv.Records, at.vector(from))
		if err != nil {
			return err
		}
		if values[0] == nil || s.dropped {
			continue
		}
		v, err := decodeVector(values[0], s.dimension)
		if err != nil {
			return err
		}
		if err := x.Add(ctx, tx, scope, s.name, to, v); err != nil {
			return err
		}
		if err := remove(ctx, tx, at, from); err != nil {
			return err
		}
	}
	return nil
}

// Vectors returns the vectors of documents in a space, nil for each that has
// none there.
func (x *Index) Vectors(ctx context.Context, view kv.Getter, scope kv.Scope, space string, ordinals []uint32) ([][]float32, error) {
	vectors := make([][]float32, len(ordinals))
	s, ok, err := findSpace(ctx, view, scope, space)
	if err != nil || !ok {
		return vectors, err
	}
	values, err := readValues(ctx, view, place{scope, s.number}, ordinals)
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		if value == nil {
			continue
		}
		if vectors[i], err = decodeVector(value, s.dimension); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

// readValues reads stored vectors in one round.
func readValues(ctx context.Context, view kv.Getter, at place, ordinals []uint32) ([][]byte, error) {
	if len(ordinals) == 0 {
		return nil, nil
	}
	prefix := at.vectors()
	size := len(prefix) + 4
	room := make([]byte, 0, size*len(ordinals))
	keys := make([][]byte, len(ordinals))
	for i, ordinal := range ordinals {
		room = append(append(room, prefix...), be32(ordinal)...)
		keys[i] = room[i*size : (i+1)*size : (i+1)*size]
	}
	return view.Get(ctx, kv.Records, keys...)
}

// Spaces returns the spaces of a scope in the order in which they came.
func (x *Index) Spaces(ctx context.Context, view kv.Getter, scope kv.Scope) ([]Space, error) {
	d, err := readDirectory(ctx, view, scope)
	if err != nil {
		return nil, err
	}
	var spaces []Space
	for _, s := range d.spaces {
		if s.dropped {
			continue
		}
		h, err := readHead(ctx, view, place{scope, s.number}, false)
		if err != nil {
			return nil, err
		}
		spaces = append(spaces, Space{Name: s.name, Dimension: s.dimension, Count: int(h.vectors)})
	}
	return spaces, nil
}

// Check refuses, as ErrInvalid, what can be no vector.
func Check(v []float32) error {
	if len(v) == 0 || len(v) > MaxDimension {
		return fmt.Errorf("%w: it has %d numbers", ErrInvalid, len(v))
	}
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("%w: number %d is not finite", ErrInvalid, i)
		}
	}
	return nil
}
