package blob

import (
	"context"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

const (
	// maxDue bounds the owners that wait for an early collection; any more wait for the
	// next collection of all owners.
	maxDue = 256
	// collectPause is the least time between two collections of one owner's
	// garbage in the background.
	collectPause = time.Minute
	// maxLatest bounds the owners whose last collection is remembered.
	maxLatest = 1 << 14
	// orphansEvery is how often the background looks for orphans: none is found
	// before it is a day old.
	orphansEvery = orphanAge
)

func (s *Store) startCollecting() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.collectEvery(ctx) })
}

// collectEvery collects everybody's garbage from time to time, and that of
// single owners when they are due, until ctx ends.
func (s *Store) collectEvery(ctx context.Context) {
	ticker := time.NewTicker(s.opts.CollectEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err = s.CollectAll(ctx)
		case scope := <-s.due:
			err = s.collectDue(ctx, scope)
		}
		if err != nil && ctx.Err() == nil {
			s.opts.Logger.Warn("blob: garbage not collected", "error", err)
		}
	}
}

// Nudge requests an early collection of the owner's garbage in the background, unless one
// ended within collectPause. It does not wait. Without background work it does nothing.
func (s *Store) Nudge(scope kv.Scope) {
	if s.opts.Sessions == nil || s.opts.CollectEvery < 0 || !s.mayCollect(scope) {
		return
	}
	select {
	case s.due <- scope:
	default:
	}
}

func (s *Store) collectDue(ctx context.Context, scope kv.Scope) error {
	if !s.mayCollect(scope) {
		return nil // it was named several times
	}
	return s.leases.Once(ctx, lease.Scope(scope, "collect"), func(ctx context.Context) error {
		_, err := s.Collect(ctx, scope, nil)
		return err
	})
}

// mayCollect reports whether the owner's last collection was a while ago.
func (s *Store) mayCollect(scope kv.Scope) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest, known := s.latest[scope]
	return !known || s.now().Sub(latest) >= collectPause
}

func (s *Store) noteCollected(scope kv.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.latest) >= maxLatest {
		clear(s.latest)
	}
	s.latest[scope] = s.now()
}

// CollectAll collects the garbage of all owners, and once a day their orphans. It leaves
// out the tenants whose garbage another process collects. After an error it goes on with
// the next owner; it returns the last error.
func (s *Store) CollectAll(ctx context.Context) error {
	opts := &CollectOptions{Orphans: s.orphansDue()}
	var failed error
	for scope, err := range kv.Scopes(ctx, s.engine, kv.Blobs) {
		if err != nil {
			return err
		}
		err = s.leases.Do(ctx, lease.Tenant(scope.Tenant, "collect").Every(s.opts.CollectEvery), func(ctx context.Context) error {
			return s.collectAllOf(ctx, scope, opts)
		})
		if err != nil && !errors.Is(err, lease.ErrHeld) {
			failed = err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failed
}

func (s *Store) collectAllOf(ctx context.Context, scope kv.Scope, opts *CollectOptions) error {
	for {
		done, err := s.Collect(ctx, scope, opts)
		if err != nil || !done.More {
			return err
		}
	}
}

// orphansDue reports whether it is time to look for orphans, and notes that it is
// done.
func (s *Store) orphansDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.orphans) >= orphansEvery {
		s.orphans = now
		return true
	}
	return false
}
