package children

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxRetryPause bounds the pause between two questions that the store did not answer.
	maxRetryPause = 30 * time.Second
	// compareEvery is the interval at which the live children are compared with the store,
	// if other servers share it.
	compareEvery = time.Minute
	// unknownFor is how long a commit may still come whose outcome is unknown.
	unknownFor = 30 * time.Second
)

// question is a pending read of a child from the store: whether it exists, has its result,
// and which agents were not notified of it. A read is needed after a commit with an unknown
// outcome, after a failed notification, and for all children when a server has come or
// ended.
type question struct {
	// at is when to ask: by default after retryPause.
	at time.Time
	// until is how long to go on asking about a child that is not there, or has no result.
	until time.Time
	// pause was the last one before another try.
	pause time.Duration
}

// doubt has the store asked about a child.
func (s *Spawner) doubt(scope kv.Scope, q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.at.IsZero() {
		q.at = s.opts.Now().Add(retryPause)
	}
	if other, ok := s.unsure[scope]; ok {
		if other.at.Before(q.at) {
			q.at = other.at
		}
		if other.until.After(q.until) {
			q.until = other.until
		}
	}
	s.unsure[scope] = q
	s.plan()
}

// ask asks the store about a child. What could not be done is tried again later.
func (s *Spawner) ask(ctx context.Context, scope kv.Scope, q question) {
	limited, cancel := context.WithTimeout(ctx, settleTime)
	ended, err := s.takeUp(limited, scope)
	cancel()
	now := s.opts.Now()
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		s.opts.Logger.Error("a child could not be taken up", "scope", scope.String(), "error", err)
		if errors.Is(err, kv.ErrDamaged) {
			return
		}
		q.pause = min(max(2*q.pause, retryPause), maxRetryPause)
	case ended || !now.Before(q.until):
		return
	default:
		q.pause = retryPause
	}
	q.at = now.Add(q.pause)
	s.doubt(scope, q)
}

// takeUp watches over a child that lives, and reports a result that was not reported. It returns whether the
// child has its result.
func (s *Spawner) takeUp(ctx context.Context, scope kv.Scope) (ended bool, err error) {
	c, noted, err := s.read(ctx, scope)
	if err == nil && c.Result == nil && s.add(&c, life{noted: noted != nil, notedAt: string(noted)}) {
		// A result that came in between found no child to uncount.
		c, noted, err = s.read(ctx, scope)
	}
	switch {
	case errors.Is(err, ErrNotChild):
		s.forget(scope)
		return false, nil
	case err != nil:
		return false, err
	case c.Result != nil:
		s.Returned(scope, c.parentScope())
		return true, s.notify(ctx, &c)
	}
	if err := s.notifySpawned(ctx, &c); err != nil {
		return false, err
	}
	return false, s.orphan(ctx, scope, noted)
}

// read reads a child, and at which server it was attached; nil for none.
func (s *Spawner) read(ctx context.Context, scope kv.Scope) (c Child, noted []byte, err error) {
	values, err := s.Store.engine.Get(ctx, kv.System, childKey(scope), attachedKey(scope))
	switch {
	case err != nil:
		return Child{}, nil, fmt.Errorf("children: read: %w", err)
	case values[0] == nil:
		return Child{}, nil, fmt.Errorf("%w: %q", ErrNotChild, scope.Owner)
	}
	c, err = decode(scope, values[0])
	return c, values[1], err
}

// notifySpawned notifies a child once that it was spawned.
func (s *Spawner) notifySpawned(ctx context.Context, c *Child) error {
	s.mu.Lock()
	l, lives := s.live[c.Scope()]
	notified := lives && l.notified
	s.mu.Unlock()
	if notified {
		return nil
	}
	if err := s.Notifier.Spawned(ctx, c); err != nil {
		return fmt.Errorf("children: notify %q of its spawn: %w", c.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, lives := s.live[c.Scope()]; lives {
		l.notified = true
	}
	return nil
}

// orphan begins the grace of a child that is attached to no server that is known, and was
// attached to one that has ended.
func (s *Spawner) orphan(ctx context.Context, scope kv.Scope, noted []byte) error {
	s.mu.Lock()
	l, ok := s.live[scope]
	away := ok && !l.attached && noted != nil
	s.mu.Unlock()
	if !away {
		return nil
	}
	if ended, err := s.opts.Ended(ctx, string(noted)); err != nil || !ended {
		return err // it is asked again when that server ends
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.live[scope]; ok && !l.attached {
		l.attached, l.noted, l.notedAt, l.goneAt = true, true, string(noted), s.opts.Now().Add(s.opts.Grace)
	}
	s.plan()
	return nil
}

// othersChanged has the store asked about all children that it has.
func (s *Spawner) othersChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findAt, s.findAll = s.opts.Now(), true
}

// compare has the store asked about the children that live here and not there: another
// server has ended them, and what it said of that was lost. After othersChanged it is asked
// about all. Where it does not answer that is tried again.
func (s *Spawner) compare(ctx context.Context) {
	found, err := s.find(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.opts.Logger.Error("the children of the store are not looked after", "error", err)
	}
	now := s.opts.Now()
	var asks []kv.Scope
	there := make(map[kv.Scope]bool, len(found))
	for _, scope := range found {
		there[scope] = true
	}
	s.mu.Lock()
	if s.findAll {
		asks = found
	}
	for scope := range s.live {
		if err == nil && !there[scope] {
			asks = append(asks, scope)
		}
	}
	switch {
	case err != nil && !errors.Is(err, kv.ErrDamaged):
		s.findAt = now.Add(retryPause)
	case len(s.live) > 0 || len(asks) > 0:
		s.findAt, s.findAll = now.Add(compareEvery), false
	default:
		s.findAt, s.findAll = time.Time{}, false
	}
	s.plan()
	s.mu.Unlock()
	for _, scope := range asks {
		s.doubt(scope, question{at: now})
	}
}

// find finds the live children, and children whose parents were not notified of the result.
func (s *Spawner) find(ctx context.Context) (found []kv.Scope, err error) {
	for scope, err := range liveList.Scopes(ctx, s.Store.engine) {
		if err != nil {
			return found, fmt.Errorf("children: find: %w", err)
		}
		for pair, err := range s.Store.engine.Scan(ctx, kv.System, kv.Prefix(scope.Key(tagLive))) {
			if err != nil {
				return found, fmt.Errorf("children: find: %w", err)
			}
			_, rest, err := kv.SplitKey(pair.Key)
			if err != nil || len(rest) < 1 {
				s.opts.Logger.Error("a child that lives can't be read", "error", err)
				continue
			}
			found = append(found, kv.AgentScope(scope.Tenant, string(rest[1:])))
		}
	}
	return found, nil
}
