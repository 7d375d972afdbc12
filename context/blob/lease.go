package blob

import (
	"context"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const (
	// leaseSpan is how long a lease holds. It ends with none of its calls, so that the
	// step which names the blob can still be recorded.
	leaseSpan = 10 * time.Minute
	// leaseRenewal is how often a lease is renewed while its call runs.
	leaseRenewal = leaseSpan / 2
	// fieldLeaseTime is the only field of a lease.
	fieldLeaseTime = 1
)

// Use is Lookup for a caller that is about to refer to the blob: it is not collected,
// by any server, before ctx has ended, and some minutes longer. A ctx that never ends
// keeps it for some minutes.
func (s *Store) Use(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	e, err := s.Lookup(ctx, scope, name)
	if err != nil {
		return Entry{}, err
	}
	if ctx.Done() != nil {
		s.renewLease(ctx, scope, e)
	}
	leased, err := s.lease(ctx, scope, e)
	if err != nil || !leased {
		return e, err
	}
	// It may have gone between the look and the lease.
	again, err := s.Lookup(ctx, scope, e.Path)
	if err == nil && again.Ref != e.Ref {
		err = fmt.Errorf("%w: %.64q has another blob by now", ErrNotFound, name)
	}
	return again, err
}

// lease keeps a blob for leaseSpan, and reports whether a lease was needed for that.
func (s *Store) lease(ctx context.Context, scope kv.Scope, e Entry) (bool, error) {
	until := s.now().Add(leaseSpan)
	if expires, ever := e.ExpireTime(); !ever || expires.After(until) {
		return false, nil
	}
	err := s.writer.Do(ctx, kv.Request{Blind: []kv.Ref{s.Ref(scope)}, Lazy: true, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.Blobs, leaseKey(scope, refHash(e.Ref)), wire.AppendTime(nil, fieldLeaseTime, until))
		return nil
	}})
	if err != nil {
		return false, fmt.Errorf("blob: lease %.64q: %w", e.Path, err)
	}
	return true, nil
}

// renewLease renews the lease of a blob until ctx ends.
func (s *Store) renewLease(ctx context.Context, scope kv.Scope, e Entry) {
	timer := time.AfterFunc(leaseRenewal, func() {
		if ctx.Err() != nil {
			return
		}
		if _, err := s.lease(ctx, scope, e); err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "blob: lease not renewed", "error", err)
		}
		s.renewLease(ctx, scope, e)
	})
	context.AfterFunc(ctx, func() { timer.Stop() })
}

// leased reports whether somebody is about to refer to a blob.
func (s *Store) leased(ctx context.Context, from kv.Getter, scope kv.Scope, ref string) (bool, error) {
	values, err := from.Get(ctx, kv.Blobs, leaseKey(scope, refHash(ref)))
	if err != nil {
		return false, fmt.Errorf("blob: read lease: %w", err)
	}
	for f, err := range wire.Fields(values[0]) {
		if err != nil {
			return true, nil // it is unreadable, so it stays
		}
		if f.Number == fieldLeaseTime {
			return s.now().Before(f.Time()), nil
		}
	}
	return false, nil
}
