package lexical

import (
	"context"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultCacheBytes bounds what an Index remembers: a document takes about a
// hundred bytes, so this is enough for some half a million in the scopes that
// are in use. What does not fit is read again by each query.
const DefaultCacheBytes = 64 << 20

// Options adjusts an Index. Nil and zero fields mean the defaults.
type Options struct {
	// CacheBytes bounds what is remembered between queries: the columns of
	// scopes, their tails, and the directories of segments. A scope that is too
	// large for it is served all the same, at the price of reading its columns
	// for every query. Default DefaultCacheBytes.
	CacheBytes int
	// Analysis names what makes the terms of words from texts, such as
	// "english/1". An index whose terms came from another one answers ErrOutdated.
	// Default none, which is another one too.
	Analysis string
}

// Index reads and writes the indexes of any number of scopes. It holds nothing
// but what it remembers of documents and segments that never change. All methods are safe
// for concurrent use.
type Index struct {
	cache    indexCache
	analysis string
	scores   sync.Pool // of *scores
	// mergeCommitBytes is how much of a merge one commit writes.
	mergeCommitBytes int
	// looseSlots is how soon a frame is laid out anew.
	looseSlots int
}

// New returns an index.
func New(opts *Options) *Index {
	limit, analysis := DefaultCacheBytes, ""
	if opts != nil {
		analysis = opts.Analysis
		if opts.CacheBytes > 0 {
			limit = opts.CacheBytes
		}
	}
	return &Index{cache: newIndexCache(limit), analysis: analysis, mergeCommitBytes: mergeCommitBytes, looseSlots: looseSlots}
}

// Statistics returns the counts of a scope and the number of its segments.
func (x *Index) Statistics(ctx context.Context, from kv.Reader, scope kv.Scope) (Statistics, int, error) {
	h, err := x.readReady(ctx, from, scope)
	if err != nil {
		return Statistics{}, 0, err
	}
	return h.stats, len(h.segments.segments), nil
}
