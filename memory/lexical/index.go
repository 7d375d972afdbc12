package lexical

import (
	"context"
	"errors"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// DefaultCacheBytes bounds what an Index remembers: a document takes about a
// hundred bytes, so this is enough for some half a million in the scopes that
// are in use. What does not fit is read again by each query.
const DefaultCacheBytes = 64 << 20

// Errors of the index, in addition to ErrDamaged and ErrNewer of its stored form.
var (
	// ErrOutdated: the scope's index has an older layout, its terms come from
	// another analysis, or its rebuilding is not finished; Rebuild does the rest.
	ErrOutdated = errors.New("lexical: index must be rebuilt")
	// ErrFull: the scope has used up its ordinals.
	ErrFull = errors.New("lexical: scope can't take more documents")
)

// Options adjusts an Index. Nil and zero fields mean the defaults.
type Options struct {
	// CacheBytes bounds the cache between queries: the columns of scopes, their tails, and
	// the directories of segments. A scope too large for it still works, but every query
	// reads its columns again. Default DefaultCacheBytes.
	CacheBytes int
	// Analysis names what makes the terms of words from texts, such as
	// "english/1". An index whose terms came from another one answers ErrOutdated.
	// Empty, the default, is a name like any other: an index that was made under it
	// is outdated for an Index with another one.
	Analysis string
}

// Index reads and writes the indexes of any number of scopes. It holds nothing
// but what it remembers of documents and segments that never change. All methods
// are safe for concurrent use.
type Index struct {
	cache    indexCache
	analysis string
	// mergeCommitBytes is how much of a merge one commit writes.
	mergeCommitBytes int
	// maxUnusedSlots is how soon a frame is laid out anew.
	maxUnusedSlots int
	// inverters holds the inverters of finished packings, for reuse.
	inverters sync.Pool
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
	return &Index{cache: newIndexCache(limit), analysis: analysis, mergeCommitBytes: mergeCommitBytes, maxUnusedSlots: frame.MaxUnusedSlots}
}

// Statistics returns the counts of a scope and the number of its segments.
func (x *Index) Statistics(ctx context.Context, from kv.Reader, scope kv.Scope) (segment.Statistics, int, error) {
	h, err := x.readReady(ctx, from, scope)
	if err != nil {
		return segment.Statistics{}, 0, err
	}
	return h.Stats, len(h.segments.Segments), nil
}

// Last returns the ordinal of the newest document of a scope, zero for none: what a change adds
// comes behind it.
func (x *Index) Last(ctx context.Context, from kv.Getter, scope kv.Scope) (uint32, error) {
	h, err := readHead(ctx, from, scope, false)
	if err == nil {
		err = h.ready(x.analysis)
	}
	return h.Stats.Last, err
}

// Ref is what a request that stages documents of scope, or packs them, must
// name.
func Ref(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.Index, Scope: scope} }
