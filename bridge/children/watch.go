package children

import (
	"context"
	"errors"
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
	// notesAtOnce bounds the children of one commit that notes where they are attached.
	notesAtOnce = 256
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
			s.othersChanged()
		case <-s.wake:
		case <-timer.C:
		}
		work := s.due()
		if work.find {
			s.compare(ctx)
		}
		s.note(ctx, work.notes)
		if len(work.asks) > 0 {
			s.running.Go(func() {
				for scope, q := range work.asks {
					s.ask(ctx, scope, q)
				}
			})
		}
		for scope, problem := range work.fails {
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
		if work.waiting {
			timer.Reset(watchPause)
		}
	}
}

// work is what there is to do at a moment.
type work struct {
	// find says that the live children are to be compared with the store.
	find bool
	// notes are children that were attached, which are not noted yet.
	notes []kv.Scope
	// asks are those about which the store is to be asked.
	asks map[kv.Scope]question
	// fails are late or lost children, with the reason.
	fails map[kv.Scope]string
	// waiting reports whether time alone may bring more.
	waiting bool
}

func (s *Spawner) due() work {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, holder := s.opts.Now(), s.opts.Holder()
	w := work{asks: map[kv.Scope]question{}, fails: map[kv.Scope]string{}}
	if !s.findAt.IsZero() && !now.Before(s.findAt) {
		s.findAt, w.find = time.Time{}, true
	}
	for scope, q := range s.unsure {
		if !now.Before(q.at) {
			delete(s.unsure, scope)
			w.asks[scope] = q
		}
	}
	w.waiting = !s.findAt.IsZero() || len(s.unsure) > 0
	for scope, l := range s.live {
		toNote := l.attached && l.goneAt.IsZero() && (!l.noted || l.notedAt != holder)
		if toNote && !now.Before(l.noteAt) {
			l.noted, l.notedAt = true, holder
			w.notes = append(w.notes, scope)
		}
		w.waiting = w.waiting || toNote || !l.deadline.IsZero() || !l.goneAt.IsZero()
		if l.ending || now.Before(l.retryAt) {
			continue
		}
		switch {
		case !l.deadline.IsZero() && !now.Before(l.deadline):
			w.fails[scope] = TimedOut
		case !l.goneAt.IsZero() && !now.Before(l.goneAt):
			w.fails[scope] = Disconnected
		default:
			continue
		}
		l.ending = true
	}
	return w
}

// elsewhere reports whether a child that is away was noted as attached to another server that
// lives.
func (s *Spawner) elsewhere(ctx context.Context, scope kv.Scope) (bool, error) {
	noted, err := s.Store.engine.Get(ctx, kv.System, attachedKey(scope))
	if err != nil || noted[0] == nil || string(noted[0]) == s.opts.Holder() {
		return false, err
	}
	ended, err := s.opts.Ended(ctx, string(noted[0]))
	return err == nil && !ended, err
}

// note notes at which server children were attached, for the others and the next start.
// What can't be noted now is noted a little later.
func (s *Spawner) note(ctx context.Context, scopes []kv.Scope) {
	holder := s.opts.Holder()
	for some := range slices.Chunk(scopes, notesAtOnce) {
		var refs []kv.Ref
		for _, scope := range some {
			refs = append(refs, childRef(scope), liveList.Ref(scope))
		}
		err := s.Writer.Do(ctx, kv.Request{Blind: refs, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
			for _, scope := range some {
				lives, err := tx.Watch(ctx, kv.System, liveKey(scope))
				if err != nil {
					return err
				}
				if lives != nil {
					tx.Put(kv.System, attachedKey(scope), []byte(holder))
				}
			}
			return nil
		}})
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.opts.Logger.Warn("where children are attached was not noted", "children", len(some), "first", some[0].String(), "error", err)
		s.mu.Lock()
		for _, scope := range some {
			if l, ok := s.live[scope]; ok {
				l.noted, l.noteAt = false, s.opts.Now().Add(retryPause)
			}
		}
		s.mu.Unlock()
	}
}

// fail gives a child the result that it failed.
func (s *Spawner) fail(ctx context.Context, scope kv.Scope, problem string) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var there bool
	var err error
	if problem == Disconnected {
		there, err = s.elsewhere(ctx, scope)
	}
	if err == nil && !there {
		_, err = s.complete(ctx, scope, Result{Error: problem}, true)
	}
	if !there && (err == nil || errors.Is(err, ErrEnded) || errors.Is(err, ErrNotChild)) {
		s.forget(scope) // another result was first, or it was erased
		return
	}
	if err != nil && ctx.Err() == nil {
		s.opts.Logger.Error("a child's result could not be recorded", "scope", scope.String(), "problem", problem, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.live[scope]
	switch {
	case !ok:
	case there:
		l.attached, l.ending, l.goneAt = false, false, time.Time{}
	default:
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

// Erased counts a child out that was erased, and the children of a parent that was, or of the
// part of it that was: those are agents like others. What the store has of a child says whether
// it is one still.
func (s *Spawner) Erased(ctx context.Context, scope kv.Scope) error {
	s.mu.Lock()
	gone := map[kv.Scope]kv.Scope{}
	for child, l := range s.live {
		if child == scope || l.parent == scope {
			gone[child] = l.parent
		}
	}
	s.mu.Unlock()
	for child, parent := range gone {
		_, still, err := get(ctx, kv.Current(ctx, s.Store.engine), child)
		if err != nil {
			return err
		}
		if !still {
			s.Returned(child, parent)
		}
	}
	return nil
}

// Attached notes that an agent has a stream, or has lost its last one. It does not block.
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
