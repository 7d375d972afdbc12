package grants

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

const (
	// maxRemembered bounds the bytes of cached grants.
	maxRemembered = 8 << 20
	// maxParents bounds the agents of which is remembered who spawned them.
	maxParents = 1 << 14
	// maxAncestors bounds how far up it is looked; no agent is as deep.
	maxAncestors = 64
)

// Options adjusts a Store. Nil fields mean the defaults, but Clear is required where spaces
// are deleted.
type Options struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs what fails in the background. Default silent.
	Logger *slog.Logger
	// Clear removes all records of a space. It may be called again after an error, and for
	// an empty one.
	Clear func(ctx context.Context, scope kv.Scope) error
	// Parent returns the agent that spawned another one; empty for none. Its answer may only
	// change with the sequence of the agent's scope in the keyspace system. Default: no
	// agent has a parent.
	Parent func(ctx context.Context, agent kv.Scope) (string, error)
	// HolderOf says to whose share of a tenant's spaces those count that an agent makes, such
	// as the credential by which it calls. Default: no agents have a share together.
	HolderOf func(tenant, agent string) string
}

// Store has the grants of all memories. All methods are safe for concurrent use until
// Close.
type Store struct {
	engine kv.Engine
	writer *kv.Writer
	opts   Options

	remembered *cache.Cache[kv.Scope, known]
	parents    *cache.Cache[kv.Scope, parentage]
	bell       feed.Bell // wakes permits that are held

	work    context.Context // ends with the store
	stop    context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	leaving map[kv.Scope]chan struct{} // guarded by mu: closed when the space is gone
	closed  bool                       // guarded by mu
}

// known holds the grants of a memory as of a sequence.
type known struct {
	sequence uint64
	memory   *memory
}

// parentage is who spawned an agent as of a sequence. Who did never changes; that an agent
// did may.
type parentage struct {
	sequence uint64
	parent   string
}

// New returns a store over an engine and its writer. Both stay the caller's.
func New(engine kv.Engine, writer *kv.Writer, opts *Options) *Store {
	o := *cmp.Or(opts, &Options{})
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Parent == nil {
		o.Parent = func(context.Context, kv.Scope) (string, error) { return "", nil }
	}
	work, stop := context.WithCancel(context.Background())
	return &Store{
		engine: engine, writer: writer, opts: o,
		remembered: cache.New[kv.Scope, known](maxRemembered), parents: cache.New[kv.Scope, parentage](maxParents),
		work: work, stop: stop, leaving: make(map[kv.Scope]chan struct{}),
	}
}

// Close ends the work in the background and waits for it. Closing again is harmless.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.running.Wait()
	return nil
}

// Need returns a permit if the agent has that access to a memory, and a *DeniedError if it
// has not. To an agent's own memory it has, whatever the level: that the caller may act for
// it is for others to say.
func (s *Store) Need(ctx context.Context, scope kv.Scope, agent string, need Level) (*Permit, error) {
	p := &Permit{scope: scope, agent: agent, need: need, level: Admin}
	if scope.Kind == kv.OwnerAgent {
		return p, nil
	}
	if p.static = static(ctx, scope); p.static == Admin {
		return p, nil
	}
	p.store = s
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	if p.level < need {
		return nil, p.denied()
	}
	return p, nil
}

// read returns the grants of a memory, and of the agent itself and those above it
// their ids. It asks the engine for two sequences, and for more only what has changed.
func (s *Store) read(ctx context.Context, scope kv.Scope, agent string) (*memory, []string, error) {
	self := kv.AgentScope(scope.Tenant, agent)
	sequences, err := s.engine.Sequence(ctx, refOf(scope), refOf(self))
	if err != nil {
		return nil, nil, fmt.Errorf("grants: read: %w", err)
	}
	m, err := s.memory(ctx, scope, sequences[0])
	if err != nil {
		return nil, nil, err
	}
	if m.level(agent) == None {
		return m, []string{agent}, nil
	}
	agents, err := s.line(ctx, self, sequences[1])
	return m, agents, err
}

// line is an agent whose scope has that sequence, and those above it, the nearest first.
func (s *Store) line(ctx context.Context, self kv.Scope, sequence uint64) ([]string, error) {
	agents := []string{self.Owner}
	parent, err := s.parent(ctx, self, sequence)
	for err == nil && parent != "" {
		if agents = append(agents, parent); len(agents) > maxAncestors {
			return nil, damaged(fmt.Errorf("agent %q has more than %d above it", self.Owner, maxAncestors))
		}
		above := kv.AgentScope(self.Tenant, parent)
		var sequences []uint64
		if sequences, err = s.engine.Sequence(ctx, refOf(above)); err == nil {
			parent, err = s.parent(ctx, above, sequences[0])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("grants: read who spawned %q: %w", self.Owner, err)
	}
	return agents, nil
}

// memory holds the grants of a memory whose scope has that sequence, or a later one.
func (s *Store) memory(ctx context.Context, scope kv.Scope, sequence uint64) (*memory, error) {
	if found, ok := s.remembered.Get(scope); ok && found.sequence == sequence {
		return found.memory, nil
	}
	if sequence == 0 {
		return &memory{}, nil
	}
	var found known
	err := kv.View(ctx, s.engine, []kv.Ref{refOf(scope)}, func(view kv.Snapshot) error {
		values, err := view.Get(ctx, kv.System, keyOf(scope))
		if err != nil {
			return err
		}
		found.sequence = view.Sequences()[0]
		found.memory, err = decode(values[0])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("grants: read: %w", err)
	}
	const overhead = 256 // bytes, about
	s.remembered.Put(scope, found, overhead+2*len(found.memory.raw))
	return found.memory, nil
}

// parent is who spawned an agent whose scope has that sequence.
func (s *Store) parent(ctx context.Context, agent kv.Scope, sequence uint64) (string, error) {
	if found, ok := s.parents.Get(agent); ok && (found.parent != "" || found.sequence == sequence) {
		return found.parent, nil
	}
	parent, err := s.opts.Parent(ctx, agent)
	if err == nil {
		s.parents.Put(agent, parentage{sequence, parent}, 1)
	}
	return parent, err
}
