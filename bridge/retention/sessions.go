package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxSessions bounds the sessions of an agent that go together.
const maxSessions = 1000

// sweepSessions deletes the old sessions of an agent: their results, L2 and L3, then the
// log, by which they are found again if this is interrupted.
func (s *Sweeper) sweepSessions(ctx context.Context, scope kv.Scope) error {
	before := s.opts.Now().Add(-s.opts.Sessions)
	for after := ""; ; {
		old, last, err := s.oldSessions(ctx, scope, after, before)
		if err != nil {
			return err
		}
		if len(old) > 0 {
			if err := s.deleteSessions(ctx, scope, old, before); err != nil {
				return err
			}
		}
		if after = last; after == "" {
			return nil
		}
	}
}

// oldSessions returns some sessions behind an id, and the last one that was looked at; none
// at the end.
func (s *Sweeper) oldSessions(ctx context.Context, scope kv.Scope, after string, before time.Time) (old map[string]bool, last string, err error) {
	old = make(map[string]bool)
	ids, stop := iter.Pull2(merged(
		merged(s.Log.Sessions(ctx, scope, after), s.Log.TaskSessions(ctx, scope, after)),
		merged(s.Log.ConfiguredSessions(ctx, scope, after), s.Log.WorkingSessions(ctx, scope, after)),
	))
	defer stop()
	for len(old) < maxSessions {
		id, err, more := ids()
		if !more || err != nil {
			return old, "", err
		}
		last = id
		active, err := s.Log.Active(ctx, s.Engine, scope, id, before)
		if err == nil && !active && s.Busy != nil {
			active, err = s.Busy(ctx, scope, id)
		}
		if err != nil {
			return nil, "", err
		}
		if !active {
			old[id] = true
		}
	}
	return old, last, nil
}

// merged yields what two sequences in order have, each once.
func merged(a, b iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		nextA, stopA := iter.Pull2(a)
		defer stopA()
		nextB, stopB := iter.Pull2(b)
		defer stopB()
		x, errX, moreX := nextA()
		y, errY, moreY := nextB()
		for moreX || moreY {
			if err := errors.Join(errX, errY); err != nil {
				yield("", err)
				return
			}
			id := x
			if !moreX || moreY && y < x {
				id = y
			}
			if !yield(id, nil) {
				return
			}
			if moreX && x == id {
				x, errX, moreX = nextA()
			}
			if moreY && y == id {
				y, errY, moreY = nextB()
			}
		}
	}
}

func (s *Sweeper) deleteSessions(ctx context.Context, scope kv.Scope, old map[string]bool, before time.Time) error {
	results, err := s.Blobs.CollectSessions(ctx, scope, old, aged{s.Log, old, before})
	if s.results.Add(results); err != nil {
		return err
	}
	var failed []error
	for id := range old {
		deleted, err := s.deleteSession(ctx, scope, id, before)
		if err != nil {
			failed = append(failed, fmt.Errorf("session %q: %w", id, err))
		}
		if deleted {
			s.sessions.Add(1)
			if s.Gone != nil {
				s.Gone(scope, id)
			}
		}
	}
	return errors.Join(failed...)
}

func (s *Sweeper) deleteSession(ctx context.Context, scope kv.Scope, id string, before time.Time) (bool, error) {
	if active, err := s.Log.Active(ctx, s.Engine, scope, id, before); active || err != nil {
		return false, err
	}
	if err := s.Tiers.ForgetSession(ctx, scope, id); err != nil {
		return false, err
	}
	return s.Log.Delete(ctx, scope, id, before)
}

// aged is a world in which sessions are over that are too old, as long as nothing is
// recorded in them.
type aged struct {
	log    *session.Log
	old    map[string]bool
	before time.Time
}

func (a aged) IsOpen(ctx context.Context, from kv.Getter, scope kv.Scope, id string) (bool, error) {
	if a.old[id] {
		return a.log.Active(ctx, from, scope, id, a.before)
	}
	return a.log.IsOpen(ctx, from, scope, id)
}
