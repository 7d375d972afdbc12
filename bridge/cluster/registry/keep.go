package registry

import (
	"context"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// follow has the registry read when another process has changed it.
func (r *Registry) follow(ctx context.Context) {
	for move := range r.engine.Moved(ctx) {
		if move.Any || move.Ref == ref {
			select {
			case r.look <- struct{}{}:
			default:
			}
		}
	}
}

// keep renews the lease of this process, and takes others for dead whose lease ran out.
func (r *Registry) keep(ctx context.Context) {
	every := r.opts.Term / (Term / RenewEvery)
	renewed := time.Now() // the registration is as good as that
	for {
		wait := time.Until(renewed.Add(every))
		if !r.ofLeases.IsZero() { // no later than the lease of another one runs out
			wait = min(wait, max(r.ofLeases.Sub(r.Now()), every/10))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.look:
			timer.Stop()
			if _, err := r.read(ctx); err != nil {
				r.breaks(ctx, err)
			}
			continue
		case <-timer.C:
		}
		renewed = time.Now()
		// A call that hangs must not outlast the lease.
		turn, cancel := context.WithTimeout(ctx, every)
		err := r.beat(turn)
		cancel()
		if err != nil {
			r.breaks(ctx, err)
		}
	}
}

// breaks notes that the store was not reached.
func (r *Registry) breaks(ctx context.Context, err error) {
	r.mu.Lock()
	first := !r.contact.IsZero()
	r.contact = time.Time{}
	r.mu.Unlock()
	r.ofLeases = time.Time{}
	if ctx.Err() == nil && first {
		r.opts.Logger.Warn("the lease of this server was not renewed", "error", err)
	}
}

// beat renews the lease, and checks the leases of the others.
func (r *Registry) beat(ctx context.Context) error {
	now, ahead, within, err := r.time(ctx)
	if err != nil {
		return err
	}
	if ahead.Abs() > MaxSkew+within {
		r.opts.Logger.Warn("the clock of this machine differs from that of the store", "by", ahead.String())
	}
	r.mu.Lock()
	r.ahead = ahead
	if r.contact.IsZero() {
		r.contact = time.Now()
	}
	settled := time.Since(r.contact) >= r.opts.Term/(Term/Grace)
	self := r.self
	r.mu.Unlock()
	if err := r.renew(ctx, self, now); err != nil {
		return err
	}
	e, err := r.entries(ctx)
	if err != nil {
		return err
	}
	r.ofLeases = time.Time{}
	ended := false
	for id, b := range e.bridges {
		until := decodeLease(e.leases[id])
		switch {
		case id == r.id:
		case now.Before(until):
			if r.ofLeases.IsZero() || until.Before(r.ofLeases) {
				r.ofLeases = until
			}
		case settled:
			ended = r.end(ctx, b, e.leases[id]) || ended
		}
	}
	if ended {
		if e, err = r.entries(ctx); err != nil {
			return err
		}
	}
	r.take(e)
	return nil
}

// renew renews the lease of this process, or registers it anew when others took it for
// dead.
func (r *Registry) renew(ctx context.Context, self Bridge, now time.Time) error {
	if self != (Bridge{}) {
		c := kv.Commit{
			Guards:  []kv.Guard{{Ref: ref, Any: true}},
			Watched: []kv.Watch{{Keyspace: kv.System, Key: bridgeKey(r.id), Value: self.encode()}},
			Batch:   new(kv.Batch), Lazy: true,
		}
		c.Batch.Put(kv.System, leaseKey(r.id), encodeLease(self.Epoch, now.Add(r.opts.Term)))
		err := r.engine.Commit(ctx, c)
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrFenced) {
			return err
		}
		r.opts.Logger.Error("others took this server for dead; calls that ran have an unknown outcome", "epoch", self.Epoch)
		r.engine.Health().Fail(kv.ErrFenced)
		r.mu.Lock()
		r.set(Bridge{}, r.all)
		r.mu.Unlock()
	}
	if err := r.register(ctx); err != nil {
		return err
	}
	r.engine.Health().Recover()
	r.opts.Logger.Warn("registered anew", "epoch", r.Self().Epoch)
	return nil
}

// end takes a bridge for dead, unless it has renewed its lease meanwhile.
func (r *Registry) end(ctx context.Context, b registration, lease []byte) bool {
	err := r.remove(ctx, b, kv.Watch{Keyspace: kv.System, Key: leaseKey(b.ID), Value: lease})
	switch {
	case err == nil:
		r.opts.Logger.Warn("the lease of a server ran out; it is taken for dead", "bridge", b.Name, "address", b.Address, "epoch", b.Epoch)
	case !errors.Is(err, kv.ErrConflict) && ctx.Err() == nil:
		r.opts.Logger.Warn("a server whose lease ran out stays registered", "bridge", b.Name, "error", err)
	}
	return err == nil
}

// remove ends a registration that the store has, while the watches hold.
func (r *Registry) remove(ctx context.Context, b registration, watched ...kv.Watch) error {
	for range registerAttempts {
		sequences, err := r.engine.Sequence(ctx, ref)
		if err != nil {
			return err
		}
		c := kv.Commit{
			Guards:  []kv.Guard{{Ref: ref, Sequence: sequences[0]}},
			Watched: append(watched, kv.Watch{Keyspace: kv.System, Key: bridgeKey(b.ID), Value: b.stored}),
			Batch:   new(kv.Batch),
		}
		c.Batch.Delete(kv.System, bridgeKey(b.ID))
		c.Batch.Delete(kv.System, leaseKey(b.ID))
		c.Batch.Delete(kv.System, meshKey(b.ID))
		err = r.engine.Commit(ctx, c)
		if conflict, ok := errors.AsType[*kv.ConflictError](err); !ok || conflict.Key != "" {
			return err
		}
	}
	return kv.ErrConflict
}
