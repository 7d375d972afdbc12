package lexical

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultCacheBytes bounds what an Index remembers of segments: enough for the
// directories and lengths of some two million documents.
const DefaultCacheBytes = 32 << 20

// Options adjusts an Index. Nil and zero fields mean the defaults.
type Options struct {
	// CacheBytes bounds the memory for directories and lengths of segments.
	// Default DefaultCacheBytes.
	CacheBytes int
}

// Index reads and writes the indexes of any number of scopes. It holds nothing
// but what it remembers of segments that never change. All methods are safe
// for concurrent use.
type Index struct {
	cache  *cache
	scores sync.Pool // of *scores
	// mergeCommitBytes is how much of a merge one commit writes.
	mergeCommitBytes int
}

// New returns an index.
func New(opts *Options) *Index {
	limit := DefaultCacheBytes
	if opts != nil && opts.CacheBytes > 0 {
		limit = opts.CacheBytes
	}
	return &Index{cache: newCache(limit), mergeCommitBytes: mergeCommitBytes}
}

// Add stages an encoded document and returns its ordinal and the statistics
// with it. The document that it replaces, if any, is named by supersedes. The
// request must name Ref of the scope.
func (x *Index) Add(ctx context.Context, tx *kv.Tx, scope kv.Scope, encoded []byte, supersedes uint32) (uint32, Statistics, error) {
	h, err := readHead(ctx, tx, scope, false)
	if err != nil {
		return 0, Statistics{}, err
	}
	e, err := decodeEntry(encoded)
	if err != nil {
		return 0, Statistics{}, err
	}
	if h.stats.Last == 1<<32-1 {
		return 0, Statistics{}, ErrFull
	}
	if supersedes > h.stats.Last {
		return 0, Statistics{}, fmt.Errorf("%w: superseded document %d of %d", ErrDamaged, supersedes, h.stats.Last)
	}
	if supersedes > 0 {
		e.supersedes = supersedes
		encoded = e.encode()
	}
	h.stats.Last++
	h.stats.Documents++
	h.stats.BodyWords += uint64(e.body)
	h.stats.HeaderWords += uint64(e.header)
	h.stats.TailBytes += uint64(len(encoded))
	tx.Put(kv.Index, h.entry(h.stats.Last), encoded)
	tx.Put(kv.Index, headKey(h.scope), h.encode())
	return h.stats.Last, h.stats, nil
}

// Statistics returns the counts of a scope and the number of its segments.
func (x *Index) Statistics(ctx context.Context, from kv.Reader, scope kv.Scope) (Statistics, int, error) {
	h, err := readHead(ctx, from, scope, true)
	if err != nil {
		return Statistics{}, 0, err
	}
	return h.stats, len(h.segments.segments), nil
}

// tail yields the entries that are not packed, in order, with their ordinals.
// The view must not change under it.
func (h head) tail(ctx context.Context, from scanner) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		if h.stats.Tail() == 0 {
			return
		}
		all := kv.Range{Start: h.entry(h.stats.Packed + 1), End: kv.After(h.entry(h.stats.Last))}
		n := 0
		for pair, err := range from.Scan(ctx, kv.Index, all) {
			if err != nil {
				yield(entry{}, err)
				return
			}
			e, err := decodeEntry(pair.Value)
			n++
			if !yield(e, err) || err != nil {
				return
			}
		}
		if n != h.stats.Tail() {
			yield(entry{}, fmt.Errorf("%w: %d of %d entries of the tail", ErrDamaged, n, h.stats.Tail()))
		}
	}
}

// scanner is what scanning needs of a kv.Reader.
type scanner interface {
	Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error]
}
