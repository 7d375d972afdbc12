package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// Term is how long a lease holds that is not renewed: a process that ends without a word is
	// taken for dead so long after it renewed last.
	Term = 10 * time.Second
	// RenewEvery is the time between two renewals.
	RenewEvery = Term / 5
	// Grace is how long a bridge has reached the store without a break before it takes
	// another one for dead.
	Grace = Term / 2
	// MaxSkew is how far the clock of a machine may be from that of the store when a
	// server starts there.
	MaxSkew = time.Second
	// closeTimeout bounds how long Close waits for the store.
	closeTimeout = 2 * time.Second
	// registerAttempts bounds how often a registration meets others.
	registerAttempts = 64
)

// Options configure Join. Nil and zero fields mean the defaults.
type Options struct {
	// Name is what the operator calls this server.
	Name string
	// Address is where other bridges reach it.
	Address string
	// Workspace is Bridge.Workspace.
	Workspace string
	// Term is how long a lease holds; the other times are parts of it. Default Term.
	Term time.Duration
	// Logger logs bridges that come and go. Default silent.
	Logger *slog.Logger
}

// Registry is this process's part in the registry. All methods are safe for concurrent use,
// and a nil one is for a store of one process.
type Registry struct {
	engine kv.Shared
	opts   Options
	id     string
	look   chan struct{} // holds one token while the registry is to be read
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	mesh    string        // guarded by mu; see SetMesh
	self    Bridge        // guarded by mu; zero while this process is not registered
	all     []Bridge      // guarded by mu; never changed, only replaced
	changed chan struct{} // guarded by mu; closed when self or all change
	ahead   time.Duration // guarded by mu; the store's clock before that of this process
	asked   uint64        // guarded by mu; readings of the registry that were begun
	taken   uint64        // guarded by mu; the one that all is of
	contact time.Time     // guarded by mu; since when the store was reached without a break

	// ofLeases is when the earliest lease of another one runs out; of the loop alone.
	ofLeases time.Time
}

// Join registers this process with the store until Close. The engine stays the caller's; it
// is closed after the registry. It fails with ErrInvalid, ErrSkew, ErrTooMany or an error of
// the store.
func Join(ctx context.Context, engine kv.Shared, opts *Options) (*Registry, error) {
	r := &Registry{engine: engine, id: rand.Text(), look: make(chan struct{}, 1), changed: make(chan struct{})}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Term <= 0 {
		r.opts.Term = Term
	}
	if r.opts.Logger == nil {
		r.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if err := check(r.opts.Name, r.opts.Address, r.opts.Workspace); err != nil {
		return nil, err
	}
	if err := r.checkClock(ctx); err != nil {
		return nil, err
	}
	if err := r.register(ctx); err != nil {
		return nil, err
	}
	if _, err := r.read(ctx); err != nil {
		return nil, err
	}
	ctx, r.stop = context.WithCancel(context.Background())
	r.done.Go(func() { r.follow(ctx) })
	r.done.Go(func() { r.keep(ctx) })
	return r, nil
}

// Bridges is how Of finds the registry of an engine that embeds it.
func (r *Registry) Bridges() *Registry { return r }

// Of returns the registry of an engine; nil where one process has the store for itself.
func Of(engine any) *Registry {
	if member, ok := engine.(interface{ Bridges() *Registry }); ok {
		return member.Bridges()
	}
	return nil
}

// Self returns the registration of this process; the zero Bridge while it has none, as
// after others took it for dead, and on a store of one process.
func (r *Registry) Self() Bridge {
	if r == nil {
		return Bridge{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.self
}

// Workspace is the folder of this process, as the Options say.
func (r *Registry) Workspace() string {
	if r == nil {
		return ""
	}
	return r.opts.Workspace
}

// Changed is closed when a server comes to the store or leaves it.
func (r *Registry) Changed() <-chan struct{} {
	_, changed := r.All()
	return changed
}

// All returns the bridges that are registered, this one among them, in the order of their
// epochs, and a channel that is closed when that, or Self, changes. The slice must not be
// write to.
func (r *Registry) All() ([]Bridge, <-chan struct{}) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all, r.changed
}

// Others reports whether another bridge is registered.
func (r *Registry) Others() bool {
	self := r.Self()
	all, _ := r.All()
	return slices.ContainsFunc(all, func(b Bridge) bool { return b.ID != self.ID })
}

// Holder names this registration (Bridge.String); empty while there is none.
func (r *Registry) Holder() string { return r.Self().String() }

// Ended reports whether a registration, as Bridge.String names it, is no more, so that
// nothing is written under it. Empty names, which a store of one process has, have ended.
func (r *Registry) Ended(ctx context.Context, holder string) (bool, error) {
	if r == nil {
		return true, nil
	}
	has := func(all []Bridge) bool {
		return slices.ContainsFunc(all, func(b Bridge) bool { return b.String() == holder })
	}
	if holder == "" {
		return true, nil
	}
	if all, _ := r.All(); has(all) {
		return false, nil
	}
	all, err := r.read(ctx) // it may have come since
	return err == nil && !has(all), err
}

// Now is the time by the store's clock, as far as this process knows it.
func (r *Registry) Now() time.Time {
	if r == nil {
		return time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.ahead)
}

// Close ends the registration.
func (r *Registry) Close() error {
	if r == nil {
		return nil
	}
	r.stop()
	r.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	self := r.Self()
	if self == (Bridge{}) {
		return nil
	}
	err := r.remove(ctx, registration{self, self.encode()})
	if errors.Is(err, kv.ErrConflict) || errors.Is(err, kv.ErrFenced) || errors.Is(err, kv.ErrUnreachable) {
		return nil // it is gone already, or will be taken for dead
	}
	return err
}

// time reads the store's clock, and how far it is before this process's. within is how far
// that may be wrong.
func (r *Registry) time(ctx context.Context) (now time.Time, ahead, within time.Duration, err error) {
	before := time.Now()
	if now, err = r.engine.Time(ctx); err != nil {
		return now, 0, 0, err
	}
	within = time.Since(before) / 2
	return now, now.Sub(before.Add(within)), within, nil
}

func (r *Registry) checkClock(ctx context.Context) error {
	_, ahead, within, err := r.time(ctx)
	if err != nil {
		return err
	}
	r.ahead = ahead
	if ahead.Abs() > MaxSkew+within {
		direction := "behind"
		if ahead < 0 {
			direction = "before"
		}
		return fmt.Errorf("%w: it is %v %s, and %v is the most; let both follow one time server", ErrSkew, ahead.Abs().Round(time.Millisecond), direction, MaxSkew)
	}
	return nil
}

// register registers this process under a new epoch and puts its fence up.
func (r *Registry) register(ctx context.Context) error {
	for range registerAttempts {
		now, ahead, _, err := r.time(ctx)
		if err != nil {
			return err
		}
		self, err := r.tryRegister(ctx, now)
		switch {
		case errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrUnknownOutcome): // again, under another epoch
			continue
		case err != nil:
			return err
		}
		r.engine.Fence(bridgeKey(self.ID), self.encode())
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ahead = ahead
		r.set(self, r.all)
		return nil
	}
	return fmt.Errorf("registry: register: %w", kv.ErrConflict)
}

func (r *Registry) tryRegister(ctx context.Context, now time.Time) (Bridge, error) {
	sequences, err := r.engine.Sequence(ctx, ref) // before the rest: what moves meanwhile is a conflict
	if err != nil {
		return Bridge{}, err
	}
	others, err := r.entries(ctx)
	if err != nil {
		return Bridge{}, err
	}
	if delete(others.bridges, r.id); len(others.bridges) >= MaxBridges {
		return Bridge{}, ErrTooMany
	}
	self := Bridge{ID: r.id, Epoch: others.epoch + 1, Name: r.opts.Name, Address: r.opts.Address, Workspace: r.opts.Workspace, Since: now.UTC().Truncate(time.Microsecond)}
	c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: sequences[0]}}, Batch: new(kv.Batch), Unfenced: true}
	c.Batch.Put(kv.System, scope.Key(tagEpoch), encodeLease(self.Epoch, time.Time{}))
	c.Batch.Put(kv.System, bridgeKey(self.ID), self.encode())
	c.Batch.Put(kv.System, leaseKey(self.ID), encodeLease(self.Epoch, now.Add(r.opts.Term)))
	r.mu.Lock()
	self.Mesh = r.mesh
	r.mu.Unlock()
	if self.Mesh != "" {
		c.Batch.Put(kv.System, meshKey(self.ID), []byte(self.Mesh))
	}
	return self, r.engine.Commit(ctx, c)
}

// entries are what the store has of the registry.
type entries struct {
	epoch   uint64
	bridges map[string]registration
	leases  map[string][]byte
	meshes  map[string]string
	// reading is the number of the reading: one that was begun later is newer.
	reading uint64
}

// registration is a registration, and as the store has it.
type registration struct {
	Bridge
	stored []byte
}

func (r *Registry) entries(ctx context.Context) (entries, error) {
	r.mu.Lock()
	r.asked++
	reading := r.asked
	r.mu.Unlock()
	e := entries{reading: reading, bridges: make(map[string]registration), leases: make(map[string][]byte), meshes: make(map[string]string)}
	for pair, err := range r.engine.Scan(ctx, kv.System, kv.Prefix(scope.AppendPrefix(nil))) {
		if err != nil {
			return e, err
		}
		_, rest, err := kv.SplitKey(pair.Key)
		if err != nil || len(rest) == 0 {
			continue
		}
		switch id := string(rest[1:]); rest[0] {
		case tagEpoch:
			e.epoch = decodeEpoch(pair.Value)
		case tagBridge:
			e.bridges[id] = registration{decodeBridge(id, pair.Value), pair.Value}
		case tagLease:
			e.leases[id] = pair.Value
		case tagMesh:
			e.meshes[id] = string(pair.Value)
		}
	}
	return e, nil
}

// Refresh reads who is registered: All may not yet have one that came just now.
func (r *Registry) Refresh(ctx context.Context) error {
	_, err := r.read(ctx)
	return err
}

// read reads who is registered.
func (r *Registry) read(ctx context.Context) ([]Bridge, error) {
	e, err := r.entries(ctx)
	if err != nil {
		return nil, err
	}
	return r.take(e), nil
}

// take keeps who is registered, unless what a later reading found is kept already.
func (r *Registry) take(e entries) []Bridge {
	all := make([]Bridge, 0, len(e.bridges))
	for _, b := range e.bridges {
		b.Mesh = e.meshes[b.ID]
		all = append(all, b.Bridge)
	}
	slices.SortFunc(all, func(a, b Bridge) int { return cmp.Compare(a.Epoch, b.Epoch) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.reading >= r.taken {
		r.taken = e.reading
		r.set(r.self, all)
	}
	return all
}

// set replaces the known state. The caller holds mu.
func (r *Registry) set(self Bridge, all []Bridge) {
	if self == r.self && slices.Equal(all, r.all) {
		return
	}
	r.self, r.all = self, all
	close(r.changed)
	r.changed = make(chan struct{})
}
