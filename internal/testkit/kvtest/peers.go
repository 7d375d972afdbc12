package kvtest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// maxPending bounds the refs that are kept for a receiver of Moved that is slow.
const maxPending = 256

// Peer is one of several engines over one store, as several processes have them. It is
// a DB that says what the others move.
type Peer struct {
	*memkv.DB
	all    *peers
	fence  atomic.Pointer[kv.Watch]
	health kv.Health
}

var _ kv.Shared = (*Peer)(nil)

// peers are the receivers that listen.
type peers struct {
	mu        sync.Mutex
	receivers map[*receiver]struct{} // guarded by mu
}

// receiver is one call of Moved.
type receiver struct {
	peer *Peer
	wake chan struct{} // holds one token while something is pending

	mu      sync.Mutex
	pending map[kv.Ref]struct{} // guarded by mu
	any     bool                // guarded by mu; instead of what is pending
}

// Peers returns n engines over one empty store. Each is closed by itself; the store is
// gone with the last of them.
func Peers(n int) []*Peer {
	first := memkv.New(nil)
	all := &peers{receivers: make(map[*receiver]struct{})}
	engines := make([]*Peer, n)
	for i := range engines {
		db := first
		if i > 0 {
			db = first.Share()
		}
		engines[i] = &Peer{DB: db, all: all}
	}
	return engines
}

// Commit is kv.Engine's.
func (p *Peer) Commit(ctx context.Context, c kv.Commit) error {
	if err := p.fenced(ctx, c); err != nil {
		return err
	}
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	for r := range p.all.receivers {
		if r.peer != p {
			r.add(c.Guards)
		}
	}
	return nil
}

// fenced commits while the fence stands, which comes before all else that may be wrong.
func (p *Peer) fenced(ctx context.Context, c kv.Commit) error {
	fence := p.fence.Load()
	if fence == nil || c.Unfenced {
		return p.DB.Commit(ctx, c)
	}
	values, err := p.DB.Get(ctx, fence.Keyspace, fence.Key)
	if err != nil {
		return err
	}
	if values[0] == nil || !bytes.Equal(values[0], fence.Value) {
		return kv.ErrFenced
	}
	scope, _, err := kv.SplitKey(fence.Key)
	if err != nil {
		return err
	}
	c.Watched = append(slices.Clip(c.Watched), *fence)
	if ref := (kv.Ref{Keyspace: fence.Keyspace, Scope: scope}); !slices.ContainsFunc(c.Guards, func(g kv.Guard) bool { return g.Ref == ref }) {
		c.Guards = append(slices.Clip(c.Guards), kv.Guard{Ref: ref, Any: true})
	}
	err = p.DB.Commit(ctx, c)
	if conflict, ok := errors.AsType[*kv.ConflictError](err); ok && conflict.Key == string(fence.Key) && conflict.Keyspace == fence.Keyspace {
		return kv.ErrFenced
	}
	return err
}

// Fence is kv.Shared's.
func (p *Peer) Fence(key, value []byte) {
	if key == nil {
		p.fence.Store(nil)
		return
	}
	p.fence.Store(&kv.Watch{Keyspace: kv.System, Key: key, Value: value})
}

// Time is kv.Shared's.
func (p *Peer) Time(ctx context.Context) (time.Time, error) {
	_, err := p.Sequence(ctx)
	return time.Now(), err
}

// Health is kv.Monitored's.
func (p *Peer) Health() *kv.Health { return &p.health }

// add keeps the refs that a commit has raised.
func (r *receiver) add(guards []kv.Guard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range guards {
		if !g.Any {
			r.pending[g.Ref] = struct{}{}
		}
	}
	if len(r.pending) > maxPending {
		r.any = true
		clear(r.pending)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns what is pending.
func (r *receiver) take() (moves []kv.Move) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.any {
		r.any = false
		moves = append(moves, kv.Move{Any: true})
	}
	for ref := range r.pending {
		moves = append(moves, kv.Move{Ref: ref})
	}
	clear(r.pending)
	return moves
}

// Moved is kv.Notifier's. It listens from the call on.
func (p *Peer) Moved(ctx context.Context) iter.Seq[kv.Move] {
	r := &receiver{peer: p, wake: make(chan struct{}, 1), pending: make(map[kv.Ref]struct{})}
	p.all.mu.Lock()
	p.all.receivers[r] = struct{}{}
	p.all.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { p.all.leave(r) }) // also when it is not ranged over
	return func(yield func(kv.Move) bool) {
		defer stop()
		defer p.all.leave(r)
		for {
			select {
			case <-r.wake:
			case <-ctx.Done():
				return
			}
			for _, move := range r.take() {
				if !yield(move) {
					return
				}
			}
		}
	}
}

func (a *peers) leave(r *receiver) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.receivers, r)
}
