package children

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The outcomes of children.
const (
	// OutcomeReturned: it gave its result.
	OutcomeReturned = "returned"
	// OutcomeFailed: it said that it failed, or its parent stopped it.
	OutcomeFailed = "failed"
	// The other two are TimedOut and Disconnected.
)

// Outcomes are all of them.
func Outcomes() []string { return []string{OutcomeReturned, OutcomeFailed, TimedOut, Disconnected} }

// Complete stores the result of a child, and notifies its parent. Result and step of the
// parent are durable when it returns. The same result again gives the child as it is;
// another one is ErrEnded. Further errors: ErrNotChild, *invalid.Error, blob.ErrNotFound
// for a grant, or one of the store; nothing has changed then.
func (s *Spawner) Complete(ctx context.Context, scope kv.Scope, r Result) (Child, error) {
	return s.complete(ctx, scope, r, false)
}

// complete is Complete; own says that the Spawner itself makes the result.
func (s *Spawner) complete(ctx context.Context, scope kv.Scope, r Result, own bool) (Child, error) {
	c, err := s.settle(ctx, scope, r, own)
	if err != nil {
		return c, err
	}
	if err := s.notify(context.WithoutCancel(ctx), &c); err != nil {
		s.opts.Logger.Warn("could not notify a parent of a result", "scope", scope.String(), "error", err)
		s.doubt(scope, question{})
	}
	return c, nil
}

// Ends finds the child that an agent ends by its id: itself, or, if failed, one of its
// children. Any other id is ErrNotChild.
func (s *Spawner) Ends(ctx context.Context, agent kv.Scope, id string, failed bool) (kv.Scope, error) {
	scope := kv.AgentScope(agent.Tenant, id)
	c, err := s.Store.Get(ctx, scope)
	switch {
	case err != nil:
		return kv.Scope{}, err
	case scope == agent:
		return scope, nil
	case c.parentScope() != agent:
		return kv.Scope{}, fmt.Errorf("%w: %q", ErrNotChild, id)
	case !failed:
		return kv.Scope{}, refuse("agent_id", "is the parent, which may end a child only as failed")
	}
	return scope, nil
}

// settle is complete without telling the parent.
func (s *Spawner) settle(ctx context.Context, scope kv.Scope, r Result, own bool) (Child, error) {
	if err := r.check(); err != nil {
		return Child{}, err
	}
	c, err := s.Store.Get(ctx, scope)
	if err != nil {
		return Child{}, err
	}
	if r.Parent != "" && r.Parent != c.Parent {
		return Child{}, refuse("parent_id", "is not the agent that spawned the child")
	}
	granted, err := s.granted(ctx, scope, r.Grants)
	if err != nil {
		return Child{}, err
	}
	refs := make([]string, len(granted))
	for i := range granted {
		refs[i] = granted[i].Ref
	}
	r.Parent, r.Grants, r.Time = "", refs, s.opts.Now().UTC()
	switch {
	case c.Result != nil:
		return c, c.Result.repeated(&r, c.ID)
	case own && c.late(r.Time):
		r.Error = TimedOut // it was lost before, and its time has passed since
	case r.Error != TimedOut && c.late(r.Time):
		return Child{}, fmt.Errorf("%w: %q has timed out", ErrEnded, c.ID)
	}
	err = s.record(ctx, &c, r, keepRefs(scope, granted), func(ctx context.Context, tx *kv.Tx, number uint64) error {
		now, _, err := get(ctx, tx, scope)
		if err != nil {
			return err
		}
		if now.Result != nil {
			c = now
			return errSettled
		}
		now.Result = &r
		now.Result.Step = number
		tx.Put(kv.System, childKey(scope), now.encode())
		c = now
		return s.stageGrants(ctx, tx, c.parentScope(), scope, granted)
	})
	switch {
	case errors.Is(err, errSettled):
		return c, c.Result.repeated(&r, c.ID)
	case err != nil:
		if errors.Is(err, kv.ErrUnknownOutcome) {
			s.doubt(scope, question{until: s.opts.Now().Add(unknownFor)})
		}
		return Child{}, fmt.Errorf("children: result of %q: %w", scope.Owner, err)
	}
	s.leave(scope, c.parentScope(), c.Result.outcome())
	return c, nil
}

// errSettled: somebody else's result came first.
var errSettled = errors.New("children: the result is there")

// repeated is nil when another result says the same.
func (r *Result) repeated(other *Result, id string) error {
	if r.Success == other.Success && r.Text == other.Text && r.Error == other.Error && slices.Equal(r.Grants, other.Grants) {
		return nil
	}
	return fmt.Errorf("%w: %q has its result", ErrEnded, id)
}

func (r *Result) outcome() string {
	switch {
	case r.Success:
		return OutcomeReturned
	case r.Error == TimedOut, r.Error == Disconnected:
		return r.Error
	}
	return OutcomeFailed
}

// record records the parent's step, and commits what stage stages with it.
func (s *Spawner) record(ctx context.Context, c *Child, r Result, refs []kv.Ref, stage func(ctx context.Context, tx *kv.Tx, number uint64) error) error {
	args, err := json.Marshal(map[string]string{"child_id": c.ID})
	if err != nil {
		return err
	}
	report := hand.Recorded{
		Request: hand.Request{Scope: c.parentScope(), SessionID: c.ParentSession, Name: ToolResult, Args: args},
		Failed:  !r.Success, ErrorMessage: r.Error, Exempt: true,
		Join: &tools.Join{Refs: append(refs, childRef(c.Scope())), Stage: stage},
	}
	if len(r.Grants) > 0 {
		report.Join.Blind = []kv.Ref{childRef(c.parentScope())}
	}
	if r.Text != "" {
		report.Output = step.Original{Form: step.FormText, Data: []byte(r.Text)}
	}
	_, err = s.Hand.Record(ctx, report)
	return err
}

// notify notifies the parent of a result, and notes that it did.
func (s *Spawner) notify(ctx context.Context, c *Child) error {
	if err := s.Notifier.Returned(ctx, c); err != nil {
		return err
	}
	scope := c.Scope()
	return s.Writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{liveList.Ref(scope), childRef(scope)}, Lazy: true,
		Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Delete(kv.System, liveKey(scope))
			tx.Delete(kv.System, attachedKey(scope))
			return nil
		},
	})
}
