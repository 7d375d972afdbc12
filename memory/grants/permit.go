package grants

import (
	"bytes"
	"context"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// lookEvery is how often a permit that is held looks for itself at an engine that other
// processes write to.
const lookEvery = time.Second

// Permit says that an agent has access to a memory. It is not safe for concurrent use, but
// for Check.
type Permit struct {
	store *Store // nil where no grant is needed
	scope kv.Scope
	agent string
	need  Level
	// static is what the caller's credential gives.
	static Level

	// What was found last.
	level  Level
	agents []string // the agent and those above it, whose grants count
	raw    []byte   // the grants, as stored
}

// Administers reports whether the agent may do everything with the memory.
func (p *Permit) Administers() bool { return p.level == Admin }

func (p *Permit) denied() error { return &DeniedError{p.agent, p.scope, p.need} }

// look finds out what the agent may do.
func (p *Permit) look(ctx context.Context) error {
	m, agents, err := p.store.read(ctx, p.scope, p.agent)
	if err != nil {
		return err
	}
	p.agents, p.raw = agents, m.raw
	p.level = max(p.static, m.of(agents))
	return nil
}

// granted reports whether the permit hangs on a grant.
func (p *Permit) granted() bool { return p.store != nil && p.static < p.need }

// Still returns a *DeniedError when the agent has lost the access meanwhile.
func (p *Permit) Still(ctx context.Context) error {
	if !p.granted() {
		return nil
	}
	if err := p.look(ctx); err != nil {
		return err
	}
	if p.level < p.need {
		return p.denied()
	}
	return nil
}

// Refs are what Check reads. They are for the blind ones of a commit.
func (p *Permit) Refs() []kv.Ref {
	if !p.granted() {
		return nil
	}
	return []kv.Ref{refOf(p.scope)}
}

// Check returns a *DeniedError if the agent has lost the access, as a part of a commit:
// a commit after a grant was revoked writes nothing.
func (p *Permit) Check(ctx context.Context, tx *kv.Tx) error {
	if !p.granted() {
		return nil
	}
	raw, err := tx.Watch(ctx, kv.System, keyOf(p.scope))
	if err != nil || bytes.Equal(raw, p.raw) {
		return err
	}
	m, err := decode(raw)
	if err == nil && m.of(p.agents) < p.need {
		err = p.denied()
	}
	return err
}

// Hold returns a context that ends, with a *DeniedError as its cause, when the agent loses
// the access. Call release when it is not needed any more.
func (p *Permit) Hold(ctx context.Context) (held context.Context, release func()) {
	if !p.granted() {
		return ctx, func() {}
	}
	held, cancel := context.WithCancelCause(ctx)
	rings, leave := p.store.bell.Listen(p.scope)
	own, done := *p, make(chan struct{})
	go func() {
		defer close(done)
		if err := own.wait(held, rings); err != nil {
			cancel(err)
		}
	}()
	return held, func() {
		cancel(context.Canceled)
		<-done
		leave()
	}
}

// wait returns an error once the access is lost; nil when ctx ends.
func (p *Permit) wait(ctx context.Context, rings <-chan struct{}) error {
	var look <-chan time.Time
	if _, shared := p.store.engine.(kv.Notifier); shared {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		// First, for what happened before anybody listened.
		if err := p.Still(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-rings:
		case <-look:
		}
	}
}
