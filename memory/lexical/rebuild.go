package lexical

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Bounds of one commit of a rebuilding, so that it stays small.
const (
	rebuildDocuments = 500
	rebuildBytes     = 2 << 20
	// rebuildGaps bounds the deleted ones, of which hardly anything is written.
	rebuildGaps = 16 << 10
	// minGapSegment is how many deleted ones in a row are their own segment,
	// instead of an entry each.
	minGapSegment = rebuildGaps
	// maxGapOrdinals bounds the gap ordinals of one commit, which writes a bit for each.
	maxGapOrdinals = 64 * segment.DeletedPerChunk
	// maxRestarts bounds how often a rebuilding begins anew because another
	// process is at it as well.
	maxRestarts = 64
)

// Feed gives a rebuilding its documents.
type Feed struct {
	// Documents yields those whose ordinal is greater than after, in the order
	// of their ordinals. The view may go on to a later moment, at which the
	// documents are the same. An ordinal that is left out is that of a deleted one.
	Documents func(ctx context.Context, view kv.Reader, after uint32) iter.Seq2[Numbered, error]
	// Refs and Stage add to the commit that takes documents into the index; nil
	// adds nothing. Stage follows the rules of kv.Stage. Refs are blind.
	Refs  []kv.Ref
	Stage func(ctx context.Context, tx *kv.Tx, ordinals []uint32) error
}

// Rebuild makes the index of a scope anew if it has an older layout or terms of
// another analysis, and goes on with what an earlier call began; with what one
// for another analysis began it does not. Until it is done, the scope answers
// ErrOutdated to readers and writers of documents; so none may be lost. Commits
// are small, and the old index is deleted by Merge. For an index that needs no
// rebuilding it does nothing.
func (x *Index) Rebuild(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope, from Feed) error {
	r := &rebuilding{index: x, engine: engine, writer: writer, scope: scope, source: from}
	for range maxRestarts {
		err := r.run(ctx)
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return fmt.Errorf("lexical: rebuild %s: %w", scope, err)
		}
		return nil
	}
	return fmt.Errorf("lexical: rebuild %s: %w", scope, errStale)
}

// rebuilding is one call of Rebuild.
type rebuilding struct {
	index  *Index
	engine kv.Engine
	writer *kv.Writer
	scope  kv.Scope
	source Feed

	last    uint32 // the last ordinal that the new index has
	waiting []numbered
	load    int // what the waiting ones amount to in one commit, in bytes or like it
}

// numbered is a document in its stored form, or a deleted one without any.
type numbered struct {
	ordinal uint32
	encoded []byte
}

// reached is the last ordinal that is stored or waiting.
func (r *rebuilding) reached() uint32 { return r.last + uint32(len(r.waiting)) }

func (r *rebuilding) run(ctx context.Context) error {
	h, err := r.begin(ctx)
	if err != nil || !h.Rebuilding {
		return err
	}
	r.last, r.waiting, r.load = h.Stats.Last, nil, 0
	// Nobody changes a document of an index under way, so it may be read at several
	// moments.
	view := kv.ReadLong(r.engine)
	defer view.Close()
	if err := r.takeAll(ctx, h, view); err != nil {
		if now, failed := r.head(ctx); failed == nil && view.Moments() > 1 && (now.Incarnation != h.Incarnation || !now.Rebuilding) {
			return errStale // another process was done in between
		}
		return err
	}
	return r.flush(ctx, true)
}

// takeAll takes the documents that the new index does not have yet.
func (r *rebuilding) takeAll(ctx context.Context, h scopeHead, view kv.Reader) error {
	for n, err := range r.source.Documents(ctx, view, r.last) {
		if err != nil {
			return err
		}
		if n.Ordinal <= r.reached() || h.Reach > 0 && n.Ordinal > h.Reach {
			return fmt.Errorf("%w: document %d comes after %d of %d", segment.ErrDamaged, n.Ordinal, r.reached(), h.Reach)
		}
		if err := r.skip(ctx, n.Ordinal-1); err != nil {
			return err
		}
		encoded := n.Document.Encode()
		if err := r.take(ctx, encoded, max(len(encoded), rebuildBytes/rebuildDocuments)); err != nil {
			return err
		}
	}
	return r.skip(ctx, h.Reach)
}

// begin replaces the head of an index with the head of a new one. An earlier replaced index
// must be deleted by then, because a head names only one index with keys left to delete.
func (r *rebuilding) begin(ctx context.Context) (h scopeHead, err error) {
	if err := r.sweepBefore(ctx); err != nil {
		return scopeHead{}, err
	}
	err = r.do(ctx, nil, func(ctx context.Context, tx *kv.Tx) error {
		if h, err = readHead(ctx, tx, r.scope, false); err != nil || !h.replaced(r.index.analysis) {
			return err
		}
		if h.Sweep != 0 {
			return errStale
		}
		h = h.successor(r.index.analysis)
		tx.Put(kv.Index, segment.HeadKey(r.scope), h.Encode())
		return nil
	})
	return h, err
}

// sweepBefore deletes what an index that is to be replaced has itself replaced.
func (r *rebuilding) sweepBefore(ctx context.Context) error {
	for {
		h, err := r.head(ctx)
		if err != nil || h.Sweep == 0 || !h.replaced(r.index.analysis) {
			return err
		}
		if _, err := sweep(ctx, r.writer, h); err != nil {
			return err
		}
	}
}

func (r *rebuilding) head(ctx context.Context) (h scopeHead, err error) {
	err = kv.View(ctx, r.engine, nil, func(view kv.Snapshot) error {
		h, err = readHead(ctx, view, r.scope, true)
		return err
	})
	return h, err
}

// successor is the head of an empty index that takes the place of h.
func (h scopeHead) successor(analysis string) scopeHead {
	next := h.Generation + 1
	if next == 0 { // all numbers were used; by now the keys of the first are gone
		next = segment.FirstGeneration
	}
	return scopeHead{Space: segment.Space{Scope: h.Scope, Generation: next}, Head: segment.Head{
		Active: next, Incarnation: max(1, rand.Uint64()), Rebuilding: true, Sweep: h.Generation,
		Analysis: analysis, Reach: max(h.Reach, h.Stats.Last),
	}}
}

// skip assigns the next ordinals, up to last, to deleted documents.
func (r *rebuilding) skip(ctx context.Context, last uint32) error {
	if reached := r.reached(); last > reached && last-reached >= minGapSegment {
		return r.skipWithSegments(ctx, last)
	}
	for r.reached() < last {
		if err := r.take(ctx, nil, rebuildBytes/rebuildGaps); err != nil {
			return err
		}
	}
	return nil
}

// take lets the next document wait, and commits when enough do.
func (r *rebuilding) take(ctx context.Context, encoded []byte, load int) error {
	r.waiting = append(r.waiting, numbered{r.reached() + 1, encoded})
	if r.load += load; r.load < rebuildBytes {
		return nil
	}
	return r.flush(ctx, false)
}

func (r *rebuilding) do(ctx context.Context, blind []kv.Ref, stage kv.Stage) error {
	return r.writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(r.scope)}, Blind: blind, Lazy: true, Stage: stage})
}

// flush commits the documents that wait, and packs them; with done it ends the
// rebuilding.
func (r *rebuilding) flush(ctx context.Context, done bool) error {
	if err := r.do(ctx, r.source.Refs, func(ctx context.Context, tx *kv.Tx) error { return r.stage(ctx, tx, done) }); err != nil {
		return err
	}
	if n := len(r.waiting); n > 0 {
		r.last = r.waiting[n-1].ordinal
	}
	r.waiting, r.load = nil, 0
	for {
		s, _, err := r.index.Pack(ctx, r.engine, r.writer, r.scope)
		if err != nil || s.Tail() < rebuildDocuments/2 {
			return err
		}
	}
}

func (r *rebuilding) stage(ctx context.Context, tx *kv.Tx, done bool) error {
	a := application{tx: tx, sessions: make(map[uint64]int64)}
	var err error
	if a.scopeHead, err = readHead(ctx, tx, r.scope, false); err != nil {
		return err
	}
	if !a.Rebuilding || a.Stats.Last != r.last {
		return errStale
	}
	var gaps, ordinals []uint32
	for _, n := range r.waiting {
		added := Added{Encoded: n.encoded}
		if n.encoded == nil {
			added.Encoded = segment.Entry{}.Encode()
			gaps = append(gaps, n.ordinal)
		} else {
			ordinals = append(ordinals, n.ordinal)
		}
		if err := a.add(added, a.Stats.Last); err != nil {
			return err
		}
	}
	if err := a.delete(ctx, gaps); err != nil {
		return err
	}
	if a.Rebuilding = !done; done {
		a.Reach = 0
	}
	if err := a.finish(ctx); err != nil || r.source.Stage == nil || len(ordinals) == 0 {
		return err
	}
	return r.source.Stage(ctx, tx, ordinals)
}
