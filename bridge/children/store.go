package children

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Store reads children. All methods are safe for concurrent use.
type Store struct {
	engine kv.Reader
	now    func() time.Time
}

// NewStore returns a store over an engine, which stays the caller's. A nil clock is
// time.Now.
func NewStore(engine kv.Reader, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{engine, now}
}

// Get returns a child; ErrNotChild for an agent that was not spawned.
func (s *Store) Get(ctx context.Context, scope kv.Scope) (Child, error) {
	c, found, err := get(ctx, kv.Current(ctx, s.engine), scope)
	if err == nil && !found {
		err = fmt.Errorf("%w: %q", ErrNotChild, scope.Owner)
	}
	return c, err
}

func get(ctx context.Context, from kv.Getter, scope kv.Scope) (Child, bool, error) {
	if scope.Validate() != nil {
		return Child{}, false, nil
	}
	values, err := from.Get(ctx, kv.System, childKey(scope))
	if err != nil {
		return Child{}, false, fmt.Errorf("children: read: %w", err)
	}
	if values[0] == nil {
		return Child{}, false, nil
	}
	c, err := decode(scope, values[0])
	return c, err == nil, err
}

// Parent is the agent that spawned another one; empty for one that was not spawned.
func (s *Store) Parent(ctx context.Context, scope kv.Scope) (string, error) {
	c, _, err := get(ctx, kv.Current(ctx, s.engine), scope)
	return c.Parent, err
}

// Is reports whether an agent was spawned. A fault of the store says that it was.
func (s *Store) Is(scope kv.Scope) bool { return s.is(context.Background(), scope) }

// is asks the view of its caller, and the store where that fails: a view may be too old, or
// over.
func (s *Store) is(ctx context.Context, scope kv.Scope) bool {
	if scope.Validate() != nil {
		return false
	}
	values, err := kv.Current(ctx, s.engine).Get(ctx, kv.System, childKey(scope))
	if err != nil {
		values, err = s.engine.Get(context.Background(), kv.System, childKey(scope))
	}
	return err != nil || values[0] != nil
}

// Bounds are what an agent may do, as hand.Deps asks for them. An agent that was not
// spawned has none.
func (s *Store) Bounds(ctx context.Context, scope kv.Scope) (hand.Bounds, error) {
	c, found, err := get(ctx, kv.Current(ctx, s.engine), scope)
	if err != nil || !found {
		return hand.Bounds{}, err
	}
	return s.boundsOf(&c), nil
}

func (s *Store) boundsOf(c *Child) hand.Bounds {
	b := hand.Bounds{
		Steps: c.Limits.Steps, StepTokens: c.Limits.StepTokens, Files: c.Limits.Files, Bytes: c.Limits.Bytes, Tools: c.Tools,
	}
	if c.Result != nil || c.late(s.now()) {
		b.Ended = fmt.Errorf("%w: %q", ErrEnded, c.ID)
	}
	return b
}

// Foresee adds what the store reads of an agent.
func (s *Store) Foresee(along *kv.Reads, scope kv.Scope) {
	if scope.Validate() == nil {
		along.Get(kv.System, childKey(scope))
	}
}

// Permit is Acts for a call that asks on its way (kv.WithPermit); nil where that saves
// nothing.
func (s *Store) Permit(scope kv.Scope) *kv.Permit {
	if _, far := s.engine.(kv.Far); !far || scope.Validate() != nil {
		return nil
	}
	return &kv.Permit{Keyspace: kv.System, Key: childKey(scope), Check: func(value []byte) error {
		if value == nil {
			return nil
		}
		c, err := decode(scope, value)
		if err != nil {
			return err
		}
		return s.boundsOf(&c).Ended
	}}
}

// Acts is ErrEnded for an agent that has its result, or is late: it does nothing any more.
// The bridge asks here about whatever an agent does, on both of its faces.
func (s *Store) Acts(ctx context.Context, scope kv.Scope) error {
	if kv.PermitOf(ctx).Of(kv.System, childKey(scope)) {
		return nil // the call asks on its way
	}
	b, err := s.Bounds(ctx, scope)
	if err != nil {
		return err
	}
	return b.Ended
}

// Fork is what the prompts of an agent's session begin with, nil for what is no fork.
// ErrForkGone where it was erased.
func (s *Store) Fork(ctx context.Context, scope kv.Scope, sessionID string) ([]byte, error) {
	from := kv.Current(ctx, s.engine)
	c, found, err := get(ctx, from, scope)
	if err != nil || !found || c.Fork == "" || c.SessionID != sessionID {
		return nil, err
	}
	var head []byte
	for pair, err := range from.Scan(ctx, kv.System, kv.Prefix(forkPrefix(c.parentScope(), c.Fork))) {
		if err != nil {
			return nil, fmt.Errorf("children: read fork: %w", err)
		}
		head = append(head, pair.Value...)
	}
	if sum := sha256.Sum256(head); string(sum[:]) != c.Fork {
		return nil, fmt.Errorf("%w: %q of %q", ErrForkGone, c.ID, c.Parent)
	}
	return head, nil
}

// MayHaveChildren reports whether a child may have children itself.
func (s *Spawner) MayHaveChildren(c *Child) bool { return c.Depth < DefaultMaxDepth }

// Given are the tools that an agent may call; nil for all.
type Given []string

// Has reports whether a tool is among them.
func (g Given) Has(tool string) bool { return g == nil || slices.Contains(g, tool) }

// Tools returns the tools that an agent was given by its parent.
func (s *Store) Tools(ctx context.Context, scope kv.Scope) (Given, error) {
	c, _, err := get(ctx, kv.Current(ctx, s.engine), scope)
	return c.Tools, err
}

// maxListed bounds the children that List returns.
const maxListed = 10_000

// List returns the children of a parent that are not older than its last maxListed, in
// the order in which they were spawned.
func (s *Store) List(ctx context.Context, parent kv.Scope) ([]Child, error) {
	var ids []string
	r := kv.Prefix(parent.Key(tagSpawned))
	r.Reverse, r.Limit = true, maxListed
	for pair, err := range s.engine.Scan(ctx, kv.System, r) {
		if err != nil {
			return nil, fmt.Errorf("children: list: %w", err)
		}
		ids = append(ids, string(pair.Value))
	}
	all := make([]Child, 0, len(ids))
	for i := len(ids) - 1; i >= 0; i-- {
		c, found, err := get(ctx, s.engine, kv.AgentScope(parent.Tenant, ids[i]))
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, c)
		}
	}
	return all, nil
}

// Check reads the child that a scope is back, and what stands in its scope about its own
// children. found is called for each fault; the error is only why the check could not go on.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	if scope.Kind != kv.OwnerAgent {
		return nil
	}
	err := kv.Walk(ctx, from, kv.System, kv.Prefix(childKey(scope)), found, func(p kv.Pair) error {
		c, err := decode(scope, p.Value)
		if err != nil {
			return err
		}
		at, err := from.Get(ctx, kv.System, spawnedKey(c.parentScope(), c.Number))
		if err == nil && string(at[0]) != c.ID {
			err = fmt.Errorf("%w: children: %s is not a child of %s", kv.ErrDamaged, c.ID, c.Parent)
		}
		return err
	})
	if err != nil {
		return err
	}
	return kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagSpawned)), found, func(p kv.Pair) error {
		_, rest, err := kv.SplitKey(p.Key)
		if err != nil || len(rest) != 1+8 {
			return fmt.Errorf("%w: children: a key is malformed", kv.ErrDamaged)
		}
		c, there, err := get(ctx, from, kv.AgentScope(scope.Tenant, string(p.Value)))
		if err == nil && (!there || c.Parent != scope.Owner || c.Number != binary.BigEndian.Uint64(rest[1:])) {
			err = fmt.Errorf("%w: children: %q is no child of %s", kv.ErrDamaged, p.Value, scope.Owner)
		}
		return err
	})
}
