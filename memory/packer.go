package memory

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

const (
	// DefaultPackAfter is how many records of a scope wait before they are
	// packed: the more at once, the less work for each. A query reads that many
	// entries in about half a millisecond.
	DefaultPackAfter = 256
	// packReadShare: a query that meets a tail longer than PackAfter divided by
	// this has it packed, so that the next ones need not read it.
	packReadShare = 8
	// packAfterBytes packs earlier where the records are long.
	packAfterBytes = 1 << 20
	// packInline is how many times PackAfter or packAfterBytes a scope's
	// waiting records may reach before its saves pack them themselves, which
	// slows those who save faster than the background packs.
	packInline = 8
	// purgeShare: a scope whose segments hold that many times fewer deleted records
	// than live ones, or more, is looked at by the merging.
	purgeShare = 8
	// maxScopesWaiting bounds the scopes that wait for the background. One more
	// waits for its next save.
	maxScopesWaiting = 4096
)

// packer packs and merges the indexes of scopes in the background: one
// goroutine for each of the two, so that a long merge holds up no packing.
type packer struct {
	index     *lexical.Index
	engine    kv.Engine
	writer    *kv.Writer
	leases    *lease.Holder
	logger    *slog.Logger
	packAfter int

	packs, merges *worklist
	stop          context.CancelFunc
	running       sync.WaitGroup

	mu sync.Mutex // guards packing
	// packing holds the scopes that are being packed or rebuilt; the channel is
	// closed when that is done.
	packing map[kv.Scope]chan struct{}
}

func newPacker(index *lexical.Index, engine kv.Engine, writer *kv.Writer, leases *lease.Holder, logger *slog.Logger, packAfter int) *packer {
	p := &packer{
		index: index, engine: engine, writer: writer, leases: leases, logger: logger, packAfter: packAfter,
		packs: newWorklist(), merges: newWorklist(), packing: make(map[kv.Scope]chan struct{}),
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.running.Go(func() { p.packs.run(ctx, p.leased("pack", p.pack)) })
	p.running.Go(func() { p.merges.run(ctx, p.leased("merge", p.merge)) })
	return p
}

// leased returns work that is done while no other process is at it in the scope.
func (p *packer) leased(name string, work func(context.Context, kv.Scope)) func(context.Context, kv.Scope) {
	return func(ctx context.Context, scope kv.Scope) {
		if err := leased(ctx, p.leases, scope, name, work); err != nil {
			p.report(ctx, name, scope, err)
		}
	}
}

// leased does some work on a scope unless another process is at it: then the scope
// waits for its next save.
func leased(ctx context.Context, leases *lease.Holder, scope kv.Scope, name string, work func(context.Context, kv.Scope)) error {
	return leases.Once(ctx, lease.Scope(scope, name), func(ctx context.Context) error {
		work(ctx, scope)
		return nil
	})
}

// close ends the background work and waits for it.
func (p *packer) close() {
	p.stop()
	p.running.Wait()
}

// saved is called after every save. It makes the caller wait when the background
// has fallen far behind.
func (p *packer) saved(ctx context.Context, scope kv.Scope, s segment.Statistics) {
	switch {
	case p.reached(s, packInline):
		p.pack(ctx, scope)
	case p.reached(s, 1):
		p.packs.add(scope)
	}
	// Packing leaves out those that were deleted in the tail.
	if inTail := min(s.Unpurged(), uint64(s.Tail())); (s.Unpurged()-inTail)*purgeShare > s.Documents {
		p.merges.add(scope)
	}
}

// read is called by every query.
func (p *packer) read(scope kv.Scope, s segment.Statistics) {
	if s.Tail() > p.packAfter/packReadShare {
		p.packs.add(scope)
	}
}

// reached tells whether the tail is that many times as long as it may be.
func (p *packer) reached(s segment.Statistics, times int) bool {
	return s.Tail() >= times*p.packAfter || s.TailBytes >= uint64(times)*packAfterBytes
}

// pack packs a scope until its tail is short, or waits for the caller that does.
func (p *packer) pack(ctx context.Context, scope kv.Scope) {
	done, mine := p.claim(scope)
	if !mine {
		select {
		case <-done:
		case <-ctx.Done():
		}
		return
	}
	defer p.release(scope, done)
	for ctx.Err() == nil {
		s, merge, err := p.index.Pack(ctx, p.engine, p.writer, scope)
		if errors.Is(err, lexical.ErrOutdated) {
			return // the next save or query rebuilds it
		}
		if err != nil {
			p.report(ctx, "pack", scope, err)
			return
		}
		if merge {
			p.merges.add(scope)
		}
		if !p.reached(s, 1) {
			return
		}
	}
}

func (p *packer) merge(ctx context.Context, scope kv.Scope) {
	for ctx.Err() == nil {
		more, err := p.index.Merge(ctx, p.engine, p.writer, scope)
		if errors.Is(err, lexical.ErrOutdated) {
			return
		}
		if err != nil {
			p.report(ctx, "merge", scope, err)
		}
		if err != nil || !more {
			return
		}
	}
}

// report logs a failure. Nothing is lost by one: the next save tries again.
func (p *packer) report(ctx context.Context, work string, scope kv.Scope, err error) {
	if ctx.Err() == nil {
		p.logger.ErrorContext(ctx, "memory index: background work failed", "work", work, "scope", scope.String(), "error", err)
	}
}

// claim makes the caller the one who packs the scope, or returns what to wait
// for.
func (p *packer) claim(scope kv.Scope) (done chan struct{}, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done := p.packing[scope]; done != nil {
		return done, false
	}
	done = make(chan struct{})
	p.packing[scope] = done
	return done, true
}

func (p *packer) release(scope kv.Scope, done chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.packing, scope)
	close(done)
}

// worklist holds scopes that wait for a goroutine, each once.
type worklist struct {
	scopes chan kv.Scope

	mu      sync.Mutex // guards the fields below
	waiting map[kv.Scope]struct{}
	dropped bool // a scope could not be added
}

func newWorklist() *worklist {
	return &worklist{scopes: make(chan kv.Scope, maxScopesWaiting), waiting: make(map[kv.Scope]struct{})}
}

// add lets a scope wait, unless it does or too many do.
func (w *worklist) add(scope kv.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.waiting[scope]; ok {
		return
	}
	select {
	case w.scopes <- scope:
		w.waiting[scope] = struct{}{}
	default:
		w.dropped = true
	}
}

// addAfter lets a scope wait after a pause, as one that waits already.
func (w *worklist) addAfter(scope kv.Scope, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.waiting[scope]; ok {
		return
	}
	if len(w.waiting) >= maxScopesWaiting {
		w.dropped = true
		return
	}
	w.waiting[scope] = struct{}{}
	time.AfterFunc(pause, func() {
		w.mu.Lock()
		delete(w.waiting, scope)
		w.mu.Unlock()
		w.add(scope)
	})
}

// missed tells whether the list is empty and has had no room for some scope
// since it was asked last.
func (w *worklist) missed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dropped || len(w.waiting) > 0 {
		return false
	}
	w.dropped = false
	return true
}

// run does the work until ctx ends.
func (w *worklist) run(ctx context.Context, work func(context.Context, kv.Scope)) {
	for {
		select {
		case <-ctx.Done():
			return
		case scope := <-w.scopes:
			w.mu.Lock()
			delete(w.waiting, scope)
			w.mu.Unlock()
			work(ctx, scope)
		}
	}
}
