package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// Term is how long a lease holds unless it is renewed (but see Name.Every).
	Term = 30 * time.Second
	// MaxSkew is how far the clocks of processes on one store may differ: a lease is
	// taken from another holder that much later than it ran out.
	MaxSkew = 5 * time.Second
	// maxTerm is the longest term of a lease.
	maxTerm = 24 * time.Hour
	// turnsInTerm is the number of periods of periodic work that a lease lasts. It is
	// renewed when that fraction of its term is left.
	turnsInTerm = 3
	// retryPause is the least time between two renewals.
	retryPause = time.Second
	// closeTimeout bounds how long Close waits for the store.
	closeTimeout = 2 * time.Second
	// maxKept bounds the leases that a holder remembers without working under them.
	maxKept = 4096
)

var (
	// ErrHeld: another process has the lease.
	ErrHeld = errors.New("lease: held by another process")
	// ErrLost: the lease ran out, or another process has taken it, before the work
	// under it was done.
	ErrLost = errors.New("lease: lost")
)

// Members are the processes that share a store, as an Engine which is shared knows them. It is
// all that the code of one server knows of the others on its store.
type Members interface {
	// Holder is the name that this process takes leases under; it may change. Empty: it
	// can't take any now.
	Holder() string
	// Ended reports whether nothing is committed under a name any more.
	Ended(ctx context.Context, holder string) (bool, error)
	// Now is the time by the clock that all processes have in common.
	Now() time.Time
	// Others reports whether there are others now.
	Others() bool
	// Changed returns a channel that is closed when a process comes or goes.
	Changed() <-chan struct{}
	// Refresh reads who there is: Others may not yet know one that came just now.
	Refresh(ctx context.Context) error
}

// Of returns the processes that share an engine; nil where one has it for itself.
func Of(engine any) Members {
	m, _ := engine.(Members)
	return m
}

// Options adjusts a Holder. Nil and zero fields mean the defaults.
type Options struct {
	// Now returns the time. Default: that of Members, or time.Now.
	Now func() time.Time
}

// Holder takes leases for one process. All methods are safe for concurrent use.
type Holder struct {
	writer *kv.Writer
	id     func() string
	ended  func(ctx context.Context, holder string) (bool, error)
	now    func() time.Time
	alone  bool // no other process has the store

	mu     sync.Mutex // guards leases, and users of each
	leases map[Name]*claim
}

// claim is a lease that this process has or wants.
type claim struct {
	name  Name
	users int // number of callers that work under it

	mu    sync.Mutex // held while the lease is written
	state state      // as this holder has written it last
}

// NewHolder returns a holder of leases in engine, which writes through writer. Both
// stay the caller's; close the holder before them. If the engine is Members, a lease is
// free as soon as its holder has ended.
func NewHolder(engine kv.Reader, writer *kv.Writer, opts *Options) *Holder {
	_, shared := engine.(kv.Notifier)
	own := rand.Text()
	h := &Holder{
		writer: writer, now: time.Now, alone: !shared, leases: make(map[Name]*claim), id: func() string { return own },
		ended: func(context.Context, string) (bool, error) { return false, nil },
	}
	if m := Of(engine); m != nil {
		h.id, h.ended, h.now = m.Holder, m.Ended, m.Now
	}
	if opts != nil && opts.Now != nil {
		h.now = opts.Now
	}
	return h
}

// Shared reports whether other processes may have the store as well.
func (h *Holder) Shared() bool { return !h.alone }

// Do runs work while this process holds the lease, and returns what work returns. It
// is ErrHeld, without a call of work, when another process holds it. The lease stays
// until its term is over, so that calls in a row cost one write a term; Release gives
// it back earlier. Several calls may work under one lease at once. When it is lost,
// the context of work ends, and an error of work is an ErrLost as well.
func (h *Holder) Do(ctx context.Context, name Name, work func(ctx context.Context) error) error {
	if h.alone {
		return work(ctx)
	}
	c := h.enter(name)
	defer h.exit(c)
	s, err := h.take(ctx, c)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(context.WithValue(ctx, heldKey{}, held{name, s.holder, s.epoch}))
	var renewing sync.WaitGroup
	renewing.Go(func() { h.renew(ctx, c, s, end) })
	defer renewing.Wait()
	defer end(nil)
	if err = work(ctx); err != nil && errors.Is(context.Cause(ctx), ErrLost) && !errors.Is(err, ErrLost) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// Once is Do for work that may be left to another process: if one holds the lease, it
// does nothing. Otherwise it gives the lease back when work has returned.
func (h *Holder) Once(ctx context.Context, name Name, work func(ctx context.Context) error) error {
	err := h.Do(ctx, name, work)
	if errors.Is(err, ErrHeld) {
		return nil
	}
	return errors.Join(err, h.Release(ctx, name))
}

// Release gives a lease back, unless somebody in this process works under it.
func (h *Holder) Release(ctx context.Context, name Name) error {
	h.mu.Lock()
	c := h.leases[name]
	h.mu.Unlock()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.holder == "" || !h.unused(c) {
		return nil
	}
	mine := c.state
	c.state = state{}
	return h.writer.Do(ctx, kv.Request{Refs: []kv.Ref{name.ref()}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		stored, err := name.stored(ctx, tx)
		if err == nil && stored.holder == mine.holder && stored.epoch == mine.epoch {
			tx.Put(kv.System, name.key(), state{epoch: stored.epoch}.encode())
		}
		return err
	}})
}

// Close gives all leases back. Nobody may work under one any more.
func (h *Holder) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	h.mu.Lock()
	names := make([]Name, 0, len(h.leases))
	for name := range h.leases {
		names = append(names, name)
	}
	h.mu.Unlock()
	var failed error
	for _, name := range names {
		failed = errors.Join(failed, h.Release(ctx, name))
	}
	return failed
}

func (h *Holder) enter(name Name) *claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.leases[name]
	if c == nil {
		c = &claim{name: name}
		h.leases[name] = c
	}
	c.users++
	return c
}

func (h *Holder) exit(c *claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.users--
	if len(h.leases) <= maxKept {
		return
	}
	for name, kept := range h.leases {
		if kept.users == 0 { // leases in use are left to run out
			delete(h.leases, name)
		}
	}
}

// renewal is how much of a term is left when the lease is renewed.
func (n Name) renewal() time.Duration { return n.term / turnsInTerm }

func (h *Holder) unused(c *claim) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.users == 0
}

// take takes or renews a lease, if it is due, and returns it.
func (h *Holder) take(ctx context.Context, c *claim) (state, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := h.id()
	if id == "" {
		c.state = state{}
		return c.state, ErrHeld
	}
	if c.state.holder == id && c.state.until.Sub(h.now()) > c.name.renewal() {
		return c.state, nil
	}
	var next state
	err := h.writer.Do(ctx, kv.Request{Refs: []kv.Ref{c.name.ref()}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		stored, err := c.name.stored(ctx, tx)
		if err != nil {
			return err
		}
		now := h.now()
		// Without the monotonic clock, which stands still while the machine sleeps.
		next = state{id, stored.epoch, now.Add(c.name.term).Round(0), c.name.term}
		if stored.holder != id { // otherwise it had no holder in between
			free := stored.free(now)
			if !free {
				if free, err = h.ended(ctx, stored.holder); err != nil {
					return err
				}
			}
			if !free {
				return ErrHeld
			}
			next.epoch++
		}
		tx.Put(kv.System, c.name.key(), next.encode())
		return nil
	}})
	switch {
	case err == nil:
		c.state = next
	case errors.Is(err, ErrHeld):
		c.state = state{}
	}
	return c.state, err
}

// renew renews a lease until ctx ends, and ends it when the lease is lost.
func (h *Holder) renew(ctx context.Context, c *claim, s state, end context.CancelCauseFunc) {
	over := time.AfterFunc(s.until.Sub(h.now()), func() { end(ErrLost) })
	defer over.Stop()
	timer := time.NewTimer(s.until.Add(-c.name.renewal()).Sub(h.now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next, err := h.take(ctx, c)
		switch {
		case errors.Is(err, ErrHeld), err == nil && next.epoch != s.epoch:
			end(ErrLost)
			return
		case err == nil:
			over.Reset(next.until.Sub(h.now()))
		}
		timer.Reset(max(next.until.Add(-c.name.renewal()).Sub(h.now()), retryPause))
	}
}
