// Package embeddings keeps the vectors of a store's records: it stages them with their
// records, has an embedder make missing ones, in the background, and searches them for a
// query.
//
// A record that waits for a vector has a mark in the store, and its scope stands on a list,
// so that a restart goes on. Of several processes on one store, the one with the lease of a
// scope makes its vectors.
package embeddings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embed/axis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/packing"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// DefaultTimeout is how long a query waits for its vector before it goes on
// with words only: an embedder on the same machine takes a tenth of it.
const DefaultTimeout = time.Second

// Options adjusts Embeddings. Nil and zero fields mean the defaults.
type Options struct {
	// Embedder makes the vectors. Default: only callers bring any.
	Embedder embed.Embedder
	// Timeout bounds how long a query waits for its vector. Default DefaultTimeout.
	Timeout time.Duration
	// Idle is called when a query begins to wait, and what it returns when it goes on.
	Idle func(ctx context.Context) (resume func())
	// Logger logs failed background work. Default silent.
	Logger *slog.Logger
}

const (
	// vectorsDue is after how many vectors of a scope the background looks whether
	// they should be packed: as many as a full block has, so that an import makes few
	// that are not.
	vectorsDue = 2048
	// commitWorth is how many vectors a commit counts for, so that the background
	// looks after 64 small ones, too.
	commitWorth = vectorsDue / 64
)

var (
	// ErrFailed: the embedder failed, and the query asked for vectors only.
	ErrFailed = errors.New("memory: embedder failed")
	// ErrNone: the query needs vectors and there is no embedder.
	ErrNone = errors.New("memory: no embedder is set up: start the server with --embedder-url, or bring the vectors yourself")
)

// Embeddings are the vectors of a store. All methods are safe for concurrent use. Close it.
type Embeddings struct {
	index    *vector.Index
	engine   kv.Engine
	writer   *kv.Writer
	leases   *lease.Holder
	embedder embed.Embedder // nil: none is set up
	timeout  time.Duration
	idle     func(ctx context.Context) (resume func())
	logger   *slog.Logger
	packs    *packing.Waiting[kv.Scope]
	backfill *backfill                         // nil without an embedder
	queries  *cache.Cache[queryKey, []float32] // the vectors of the latest queries
	axes     axes
	stop     context.CancelFunc
	running  sync.WaitGroup

	// making are the queries whose vectors are being made.
	making packing.Claims[queryKey]

	mu sync.Mutex // guards added
	// added counts the vectors that were staged in each scope since the
	// background last looked. A commit counts as commitWorth.
	added map[kv.Scope]int
}

// New begins the background work. The caller closes engine, writer and leases after it.
func New(engine kv.Engine, writer *kv.Writer, leases *lease.Holder, o Options) *Embeddings {
	e := &Embeddings{
		index:    vector.New(nil),
		engine:   engine,
		writer:   writer,
		leases:   leases,
		embedder: o.Embedder,
		timeout:  o.Timeout,
		idle:     o.Idle,
		logger:   o.Logger,
		packs:    packing.NewList[kv.Scope](),
		queries:  cache.New[queryKey, []float32](maxQueryVectors),
		added:    make(map[kv.Scope]int),
		axes:     axes{wanted: make(chan struct{}, 1), known: make(chan struct{})},
	}
	if e.timeout <= 0 {
		e.timeout = DefaultTimeout
	}
	if e.idle == nil {
		e.idle = func(context.Context) func() { return func() {} }
	}
	e.logger = cmp.Or(e.logger, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.running.Go(func() { e.packs.Run(ctx, e.pack) })
	if e.embedder == nil {
		e.unmark(ctx)
	} else {
		e.backfill = &backfill{Embeddings: e, scopes: packing.NewList[kv.Scope](), pause: firstBackoff, mismatched: make(map[kv.Scope]struct{})}
		e.running.Go(func() { e.backfill.run(ctx) })
		e.running.Go(func() { e.makeAxes(ctx) })
		if leases.Shared() {
			e.running.Go(func() { e.backfill.takeOver(ctx) })
		}
	}
	return e
}

// Close ends the background work and waits for it.
func (e *Embeddings) Close() {
	e.stop()
	e.running.Wait()
}

// pack packs the vectors of a scope.
func (e *Embeddings) pack(ctx context.Context, scope kv.Scope) {
	var failed error
	err := packing.Leased(ctx, e.leases, scope, "pack-vectors", func(ctx context.Context, scope kv.Scope) {
		if failed = e.index.Pack(ctx, e.engine, e.writer, scope); ctx.Err() != nil {
			failed = nil // closed, or the lease is lost: the next save tries again
		}
	})
	if err = errors.Join(failed, err); err != nil && ctx.Err() == nil {
		e.logger.ErrorContext(ctx, "memory vectors: background work failed", "work", "pack", "scope", scope.String(), "error", err)
	}
}

// Stage stages the vector of a new record, or where it has none and there
// is an embedder, that it waits for one. The request must name the scope in
// records and index, and Blind as blind.
func (e *Embeddings) Stage(ctx context.Context, tx *kv.Tx, scope kv.Scope, r record.Record) error {
	if len(r.Embedding) > 0 {
		e.count(scope, 1)
		return e.index.Add(ctx, tx, scope, r.EmbeddingSpace, r.Document.Ordinal, r.Embedding)
	}
	if e.embedder != nil {
		stageWaiting(tx, scope, r)
	}
	return nil
}

// Drop stages that a record has no vector and waits for none.
func (e *Embeddings) Drop(ctx context.Context, tx *kv.Tx, scope kv.Scope, r record.Record) error {
	if err := dropWaiting(ctx, tx, scope, r.Document.Ordinal); err != nil {
		return err
	}
	return e.index.RemoveAll(ctx, tx, scope, r.Document.Ordinal)
}

// Move stages that what a record has of vectors, or waits for, belongs to
// the ordinal that it has now.
func (e *Embeddings) Move(ctx context.Context, tx *kv.Tx, scope kv.Scope, from, to record.Record) error {
	waits, err := isWaiting(ctx, tx, scope, from.Document.Ordinal)
	if err != nil {
		return err
	}
	if waits {
		tx.Delete(kv.Records, waitingKey(scope, from.Document.Ordinal))
		stageWaiting(tx, scope, to)
	}
	return e.index.Move(ctx, tx, scope, from.Document.Ordinal, to.Document.Ordinal)
}

// Blind returns the refs that a request must name as blind to stage
// vectors of the scope.
func (e *Embeddings) Blind(scope kv.Scope) []kv.Ref {
	if e.embedder == nil {
		return nil
	}
	return []kv.Ref{List.Ref(scope)}
}

// Saved is called after every commit that staged vectors. It never waits.
func (e *Embeddings) Saved(scope kv.Scope) {
	if e.due(scope) {
		e.packs.Add(scope)
	}
	if e.backfill != nil {
		e.backfill.scopes.Add(scope)
	}
}

// count counts vectors of a scope, and returns how many there are.
func (e *Embeddings) count(scope kv.Scope, vectors int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.added) > packing.MaxWaiting {
		clear(e.added)
	}
	e.added[scope] += vectors
	return e.added[scope]
}

// due reports whether enough has been saved in a scope to see whether its vectors
// should be packed.
func (e *Embeddings) due(scope kv.Scope) bool {
	if e.count(scope, commitWorth) < vectorsDue {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.added, scope)
	return true
}

// Complete completes records with their vectors: each gets that of the space
// it was saved with, else that of the embedder, else any. One without a vector
// has none and no space.
func (e *Embeddings) Complete(ctx context.Context, view kv.Getter, scope kv.Scope, records ...*record.Record) error {
	if len(records) == 0 {
		return nil
	}
	spaces, err := e.index.Spaces(ctx, view, scope)
	if err != nil {
		return err
	}
	ordinals := make([]uint32, len(records))
	chosen := make([]int, len(records)) // how well the vector's space fits
	given := make([]string, len(records))
	for i, r := range records {
		ordinals[i], given[i] = r.Document.Ordinal, r.EmbeddingSpace
	}
	for _, space := range spaces {
		vectors, err := e.index.Vectors(ctx, view, scope, space.Name, ordinals)
		if err != nil {
			return err
		}
		for i, v := range vectors {
			if fit := e.fit(space.Name, given[i]); v != nil && fit > chosen[i] {
				records[i].Embedding, records[i].EmbeddingSpace, chosen[i] = v, space.Name, fit
			}
		}
	}
	for _, r := range records {
		if len(r.Embedding) == 0 {
			r.EmbeddingSpace = ""
		}
	}
	return nil
}

// fit says how well a space answers for the vector of a record.
func (e *Embeddings) fit(space, given string) int {
	switch {
	case space == given:
		return 3
	case e.embedder != nil && space == e.embedder.Space():
		return 2
	}
	return 1
}

// Space is the space of the vectors that the store has made; empty
// without an embedder.
func (e *Embeddings) Space() string {
	if e.embedder == nil {
		return ""
	}
	return e.embedder.Space()
}

// Stats returns the embedding spaces of a scope and how many of its records
// wait for a vector.
func (e *Embeddings) Stats(ctx context.Context, view kv.Reader, scope kv.Scope) (spaces []vector.Space, pending int, err error) {
	if spaces, err = e.index.Spaces(ctx, view, scope); err != nil {
		return nil, 0, err
	}
	for _, err := range view.Scan(ctx, kv.Records, kv.Prefix(waitingPrefix(scope))) {
		if err != nil {
			return nil, 0, err
		}
		pending++
	}
	return spaces, pending, nil
}

// Check compares the vectors of a scope with its records.
func (e *Embeddings) Check(ctx context.Context, view kv.Reader, scope kv.Scope, ordinals map[string]uint32, report func(format string, args ...any)) error {
	known := make(map[uint32]struct{}, len(ordinals))
	for _, ordinal := range ordinals {
		known[ordinal] = struct{}{}
	}
	has := func(ordinal uint32) bool { _, ok := known[ordinal]; return ok }
	if err := e.index.Check(ctx, view, scope, has, report); err != nil {
		return fmt.Errorf("check vectors: %w", err)
	}
	marks, err := readWaiting(ctx, view, scope, 0)
	if err != nil {
		return err
	}
	for _, mark := range marks {
		if ordinals[mark.id] != mark.ordinal {
			report("record %q waits for a vector as document %d and is document %d", mark.id, mark.ordinal, ordinals[mark.id])
		}
	}
	return nil
}

// axes are the axes of a store's embedder, made in the background at the first request.
type axes struct {
	wanted chan struct{}
	known  chan struct{} // is closed when they are made, or the embedder can make none
	made   atomic.Pointer[axis.Axes]
}

// makeAxes waits until axes are wanted and makes them. While the embedder fails it tries
// again.
func (e *Embeddings) makeAxes(ctx context.Context) {
	select {
	case <-e.axes.wanted:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		made, err := axis.New(ctx, e.embedder)
		if err == nil || errors.Is(err, axis.ErrUnknown) {
			e.axes.made.Store(made)
			close(e.axes.known)
			return
		}
		e.report(ctx, "learn what states a change, trying again in "+retryAfter.String(), err)
		kv.Sleep(ctx, retryAfter)
	}
}

// Axes returns the axes of the embedder; nil where they are not made yet. The first caller
// waits for them as long as for the vector of a query.
func (e *Embeddings) Axes(ctx context.Context) *axis.Axes {
	select {
	case <-e.axes.known:
		return e.axes.made.Load()
	default:
	}
	select {
	case e.axes.wanted <- struct{}{}:
		patience := time.NewTimer(e.timeout)
		defer patience.Stop()
		select {
		case <-e.axes.known:
		case <-patience.C:
		case <-ctx.Done():
		}
	default:
	}
	return e.axes.made.Load()
}
