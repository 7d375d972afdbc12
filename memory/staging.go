package memory

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// Staging is a change of one scope's memory that is ready to be committed,
// together with changes of others if need be: put Refs and Blind into the
// kv.Request, run Stage in its staging function, make the commit within Do, and
// call Done when it has succeeded. It is good for one commit and not safe for
// concurrent use.
type Staging struct {
	store   *Store
	scope   kv.Scope
	expires bool // it may write moments of expiry
	actor   Actor
	run     func(ctx context.Context, e *edit) error

	records    []record.Record
	statistics segment.Statistics
}

// Records are what the change left, as stored, after Stage: the saved records
// in order, or the updated one. Of a deleted record only ID and Version are
// told.
func (s *Staging) Records() []record.Record { return s.records }

// Refs are what the stage reads and writes.
func (s *Staging) Refs() []kv.Ref { return []kv.Ref{recordsRef(s.scope), lexical.Ref(s.scope)} }

// Blind are refs that it writes without reading; often none.
func (s *Staging) Blind() []kv.Ref {
	blind := s.store.vectorBlind(s.scope)
	if s.expires {
		blind = append(blind, expiryRef(s.scope.Tenant))
	}
	if mention.Shared(s.scope) {
		blind = append(blind, mention.ListRef(s.scope.Tenant))
	}
	return blind
}

// Stage is the change's part of the commit. Its errors are those of the method
// that the change is named after, and leave nothing behind.
func (s *Staging) Stage(ctx context.Context, tx *kv.Tx) error {
	e := &edit{store: s.store, tx: tx, scope: s.scope, actor: s.actor}
	if s.actor.Agent != "" {
		ctx = vector.By(ctx, s.actor.Agent)
	}
	if err := s.run(ctx, e); err != nil {
		return err
	}
	if err := e.flush(ctx); err != nil {
		return err
	}
	s.records, s.statistics = e.result, e.statistics
	return nil
}

// Do runs commit, which makes the commit, and returns its error. If the index of
// the scope was written by an older version it is made anew first, and commit is
// run again.
func (s *Staging) Do(ctx context.Context, commit func() error) error {
	return s.store.current(ctx, s.scope, commit)
}

// Done tells the store that the commit has succeeded, so that its background
// work goes on. It makes the caller wait only when that has fallen far behind.
func (s *Staging) Done(ctx context.Context) {
	s.store.vectorsSaved(s.scope)
	s.store.packer.saved(ctx, s.scope, s.statistics)
}

// commit makes the change for a caller who waits.
func (s *Staging) commit(ctx context.Context, operation string) error {
	if err := s.alone(ctx, false); err != nil {
		return wrap(operation, err)
	}
	return nil
}

// alone makes the change in a commit of its own; lazily, when nobody is told that it was made.
func (s *Staging) alone(ctx context.Context, lazy bool) error {
	err := s.Do(ctx, func() error {
		return s.store.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: s.Refs(), Blind: s.Blind(), Stage: s.Stage, Lazy: lazy}))
	})
	if err == nil {
		s.Done(ctx)
	}
	return err
}
