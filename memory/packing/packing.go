// Package packing packs and merges the indexes of scopes in the background.
package packing

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

const (
	// DefaultAfter is how many records of a scope wait before they are
	// packed: the more at once, the less work for each. A query reads that many
	// entries in about half a millisecond.
	DefaultAfter = 256
	// packReadShare: a query that meets a tail longer than PackAfter divided by
	// this has it packed, so that the next ones need not read it.
	packReadShare = 8
	// packAfterBytes packs earlier where the records are long.
	packAfterBytes = 1 << 20
	// packInline is how many times PackAfter or packAfterBytes a scope's
	// waiting records may reach before its saves pack them themselves, which slows callers
	// that save faster than the background packs.
	packInline = 8
	// purgeShare: a scope whose segments hold that many times fewer deleted records
	// than live ones, or more, is looked at by the merging.
	purgeShare = 8
)

// Packer packs and merges the indexes of scopes in the background: one
// goroutine for each of the two, so that a long merge holds up no packing.
type Packer struct {
	index     *lexical.Index
	engine    kv.Engine
	writer    *kv.Writer
	leases    *lease.Holder
	logger    *slog.Logger
	packAfter int

	packs, merges *Waiting[kv.Scope]
	stop          context.CancelFunc
	running       sync.WaitGroup

	// Claims are the scopes that are being packed or rebuilt.
	Claims[kv.Scope]
}

// New starts the background work on an index.
func New(index *lexical.Index, engine kv.Engine, writer *kv.Writer, leases *lease.Holder, logger *slog.Logger, packAfter int) *Packer {
	p := &Packer{
		index: index, engine: engine, writer: writer, leases: leases, logger: logger, packAfter: packAfter,
		packs: NewList[kv.Scope](), merges: NewList[kv.Scope](),
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.running.Go(func() { p.packs.Run(ctx, p.leased("pack", p.pack)) })
	p.running.Go(func() { p.merges.Run(ctx, p.leased("merge", p.merge)) })
	return p
}

// leased returns work that is done while no other process is at it in the scope.
func (p *Packer) leased(name string, work func(context.Context, kv.Scope)) func(context.Context, kv.Scope) {
	return func(ctx context.Context, scope kv.Scope) {
		if err := Leased(ctx, p.leases, scope, name, work); err != nil {
			p.report(ctx, name, scope, err)
		}
	}
}

// Leased does some work on a scope unless another process is at it: then the scope
// waits for its next save.
func Leased(ctx context.Context, leases *lease.Holder, scope kv.Scope, name string, work func(context.Context, kv.Scope)) error {
	return leases.Once(ctx, lease.Scope(scope, name), func(ctx context.Context) error {
		work(ctx, scope)
		return nil
	})
}

// Close ends the background work and waits for it.
func (p *Packer) Close() {
	p.stop()
	p.running.Wait()
}

// Saved is called after every save. It makes the caller wait when the background
// has fallen far behind.
func (p *Packer) Saved(ctx context.Context, scope kv.Scope, s segment.Statistics) {
	switch {
	case p.reached(s, packInline):
		p.pack(ctx, scope)
	case p.reached(s, 1):
		p.packs.Add(scope)
	}
	// Packing leaves out documents deleted in the tail.
	if inTail := min(s.Unpurged(), uint64(s.Tail())); (s.Unpurged()-inTail)*purgeShare > s.Documents {
		p.merges.Add(scope)
	}
}

// Read is called by every query.
func (p *Packer) Read(scope kv.Scope, s segment.Statistics) {
	if s.Tail() > p.packAfter/packReadShare {
		p.packs.Add(scope)
	}
}

// reached reports whether the tail is that many times as long as it may be.
func (p *Packer) reached(s segment.Statistics, times int) bool {
	return s.Tail() >= times*p.packAfter || s.TailBytes >= uint64(times)*packAfterBytes
}

// pack packs a scope until its tail is short, or waits for the caller that does.
func (p *Packer) pack(ctx context.Context, scope kv.Scope) {
	done, release := p.Claim(scope)
	if release == nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
		return
	}
	defer release()
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
			p.merges.Add(scope)
		}
		if !p.reached(s, 1) {
			return
		}
	}
}

func (p *Packer) merge(ctx context.Context, scope kv.Scope) {
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
func (p *Packer) report(ctx context.Context, work string, scope kv.Scope, err error) {
	if ctx.Err() == nil {
		p.logger.ErrorContext(ctx, "memory index: background work failed", "work", work, "scope", scope.String(), "error", err)
	}
}

// Merge has the segments of a scope merged soon, where they need it.
func (p *Packer) Merge(scope kv.Scope) { p.merges.Add(scope) }
