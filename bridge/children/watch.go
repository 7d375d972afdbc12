package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// watchPause is how often the clock is looked at while a child may be late.
	watchPause = 100 * time.Millisecond
	// retryPause is how long a result waits that could not be recorded.
	retryPause = time.Second
	// maxSettling bounds the results that are recorded at once.
	maxSettling = 64
	// settleTime bounds the recording of one.
	settleTime = 30 * time.Second
	// orphansAtOnce bounds the keys of one look at where children were attached.
	orphansAtOnce = 256
)

// watch gives results to children that are late or lost, until ctx ends.
func (s *Spawner) watch(ctx context.Context) {
	places := make(chan struct{}, maxSettling)
	timer := time.NewTimer(watchPause)
	defer timer.Stop()
	changed := s.opts.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			changed = s.opts.Changed()
			if err := s.find(ctx); err != nil && ctx.Err() == nil {
				s.opts.Logger.Error("children of other servers are not taken up", "error", err)
			}
		case <-s.wake:
		case <-timer.C:
		}
		notes, due, waiting := s.due()
		for _, scope := range notes {
			s.note(ctx, scope)
		}
		for scope, problem := range due {
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			s.running.Go(func() {
				defer func() { <-places }()
				s.fail(ctx, scope, problem)
			})
		}
		if waiting {
			timer.Reset(watchPause)
		}
	}
}

// due are the children that were attached for the first time, and those that are late or
// lost, with why. waiting tells whether time alone may bring more.
func (s *Spawner) due() (notes []kv.Scope, due map[kv.Scope]string, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, holder := s.opts.Now(), s.opts.Holder()
	due = map[kv.Scope]string{}
	for scope, l := range s.live {
		if l.attached && l.goneAt.IsZero() && (!l.noted || l.notedAt != holder) {
			l.noted, l.notedAt = true, holder
			notes = append(notes, scope)
		}
		waiting = waiting || !l.deadline.IsZero() || !l.goneAt.IsZero()
		if l.ending || now.Before(l.retryAt) {
			continue
		}
		switch {
		case !l.deadline.IsZero() && !now.Before(l.deadline):
			due[scope] = TimedOut
		case !l.goneAt.IsZero() && !now.Before(l.goneAt):
			due[scope] = Disconnected
		default:
			continue
		}
		l.ending = true
	}
	return notes, due, waiting
}

// orphans begins the grace of the children that are attached to no server that is known, and
// were attached to one that has ended.
func (s *Spawner) orphans(ctx context.Context) error {
	var away []kv.Scope
	s.mu.Lock()
	for scope, l := range s.live {
		if !l.attached {
			away = append(away, scope)
		}
	}
	s.mu.Unlock()
	for some := range slices.Chunk(away, orphansAtOnce) {
		keys := make([][]byte, len(some))
		for i, scope := range some {
			keys[i] = attachedKey(scope)
		}
		noted, err := s.Store.engine.Get(ctx, kv.System, keys...)
		if err != nil {
			return fmt.Errorf("children: where they were attached: %w", err)
		}
		for i, scope := range some {
			if noted[i] == nil {
				continue
			}
			if ended, err := s.opts.Ended(ctx, scope.Tenant, string(noted[i])); err != nil || !ended {
				continue // it is looked at again when that server ends
			}
			s.mu.Lock()
			if l, ok := s.live[scope]; ok && !l.attached {
				l.attached, l.noted, l.notedAt, l.goneAt = true, true, string(noted[i]), s.opts.Now().Add(s.opts.Grace)
			}
			s.plan()
			s.mu.Unlock()
		}
	}
	return nil
}

// elsewhere tells whether a child that is away was noted as attached to another server that
// lives.
func (s *Spawner) elsewhere(ctx context.Context, scope kv.Scope) (bool, error) {
	noted, err := s.Store.engine.Get(ctx, kv.System, attachedKey(scope))
	if err != nil || noted[0] == nil || string(noted[0]) == s.opts.Holder() {
		return false, err
	}
	ended, err := s.opts.Ended(ctx, scope.Tenant, string(noted[0]))
	return err == nil && !ended, err
}

// note notes at which server a child was attached, for the others and the next start.
func (s *Spawner) note(ctx context.Context, scope kv.Scope) {
	holder := s.opts.Holder()
	err := s.Writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{childRef(scope)}, Lazy: true,
		Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.System, attachedKey(scope), []byte(holder))
			return nil
		},
	})
	if err != nil {
		s.opts.Logger.Warn("that a child was attached was not noted", "scope", scope.String(), "error", err)
	}
}

// fail gives a child the result that it failed.
func (s *Spawner) fail(ctx context.Context, scope kv.Scope, problem string) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if problem == Disconnected {
		if there, err := s.elsewhere(ctx, scope); err == nil && there {
			s.mu.Lock()
			defer s.mu.Unlock()
			if l, ok := s.live[scope]; ok {
				l.attached, l.ending, l.goneAt = false, false, time.Time{}
			}
			return
		}
	}
	_, err := s.Complete(ctx, scope, Result{Error: problem})
	if err == nil || errors.Is(err, ErrEnded) || errors.Is(err, ErrNotChild) {
		s.forget(scope) // another server was first, or it was erased
		return
	}
	if ctx.Err() == nil {
		s.opts.Logger.Error("a child's result could not be recorded", "scope", scope.String(), "problem", problem, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.live[scope]; ok {
		l.ending, l.retryAt = false, s.opts.Now().Add(retryPause)
	}
}

// forget counts a child out that others have ended.
func (s *Spawner) forget(scope kv.Scope) {
	s.mu.Lock()
	l, ok := s.live[scope]
	s.mu.Unlock()
	if ok {
		s.Returned(scope, l.parent)
	}
}

// Erased counts a child out that was erased, and the children of a parent that was: those
// are agents like others.
func (s *Spawner) Erased(scope kv.Scope) {
	s.mu.Lock()
	gone := map[kv.Scope]kv.Scope{}
	for child, l := range s.live {
		if child == scope || l.parent == scope {
			gone[child] = l.parent
		}
	}
	s.mu.Unlock()
	for child, parent := range gone {
		s.Returned(child, parent)
	}
}

// Attached says that an agent has a stream, or none any more. It does not block.
func (s *Spawner) Attached(tenant, agent string, attached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.live[kv.AgentScope(tenant, agent)]
	switch {
	case !ok:
		return
	case attached:
		l.attached, l.goneAt = true, time.Time{}
	case l.attached && l.goneAt.IsZero():
		l.goneAt = s.opts.Now().Add(s.opts.Grace)
	}
	s.plan()
}
