package agents

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

// gapKeeper has the gaps of open and recently closed streams in memory, and stores them.
// Only its own goroutine writes them, so that an older gap never replaces a newer one.
type gapKeeper struct {
	engine kv.Engine
	writer *kv.Writer
	leases *lease.Holder // of the deleting
	now    func() time.Time
	// eventTime is the clock of events.
	eventTime func() time.Time
	holder    func() string // Options.Holder
	claims    atomic.Uint64 // the last number of a claim
	logger    *slog.Logger
	keep      time.Duration
	dirty     chan struct{} // holds a token when something is to be stored
	urgent    chan struct{} // holds a token when somebody waits for it
	done      chan struct{}

	mu      sync.Mutex // guards the fields below, and the slots
	closed  bool
	version uint64
	slots   map[gapKey]*gapSlot
	changed map[gapKey]*gapSlot // slots whose state is not stored yet
	sweeps  map[string][]byte   // tenants with gaps: where the next sweep begins
}

func newGapKeeper(engine kv.Engine, writer *kv.Writer, opts Options) *gapKeeper {
	return &gapKeeper{
		engine:    engine,
		writer:    writer,
		leases:    lease.NewHolder(engine, writer, nil),
		now:       opts.Now,
		eventTime: opts.EventTime,
		holder:    opts.Holder,
		logger:    opts.Logger,
		keep:      DefaultKeepGaps,
		dirty:     make(chan struct{}, 1),
		urgent:    make(chan struct{}, 1),
		done:      make(chan struct{}),
		slots:     make(map[gapKey]*gapSlot),
		changed:   make(map[gapKey]*gapSlot),
		sweeps:    make(map[string][]byte),
	}
}

// mark changes the marks of a link.
func (k *gapKeeper) mark(l *Link, change func(*marks) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || l.gapLost || l.id == "" || gapRef(l.tenant).Scope.Validate() != nil {
		return
	}
	s := k.slots[l.gap]
	if s == nil {
		s = &gapSlot{}
		k.slots[l.gap] = s
	}
	st := s.of(l)
	entered := st == nil
	if entered {
		st = s.enter(l, k.eventTime())
	}
	if changed := change(&st.marks); (changed || entered) && !st.taken {
		k.touch(l.gap, s)
		notify(k.dirty)
	}
}

// touch notes that the slot has changed. The caller holds mu.
func (k *gapKeeper) touch(key gapKey, s *gapSlot) {
	k.version++
	s.version, s.marked = k.version, k.now().UTC()
	k.changed[key] = s
	if _, known := k.sweeps[key.tenant]; !known {
		k.sweeps[key.tenant] = nil
	}
}

// finish ends the marks of a link and waits until they are stored.
func (k *gapKeeper) finish(ctx context.Context, l *Link, abnormal bool) error {
	k.mu.Lock()
	s := k.slots[l.gap]
	if s == nil || s.of(l) == nil && !s.opening {
		k.mu.Unlock()
		return nil
	}
	if k.closed {
		k.mu.Unlock()
		return ErrClosed
	}
	var changed bool
	if st := s.of(l); st != nil {
		changed = s.end(st, abnormal, k.now().UTC())
	} else { // it was never marked
		s.opening, changed = false, len(s.streams) == 0
	}
	if !changed {
		k.mu.Unlock()
		return nil
	}
	err := k.storeAndUnlock(ctx, l.gap, s)
	if errors.Is(err, errElsewhere) { // it has been taken over from
		return nil
	}
	return err
}

// storeAndUnlock waits until the slot, as it is now, is stored. The caller holds
// mu.
func (k *gapKeeper) storeAndUnlock(ctx context.Context, key gapKey, s *gapSlot) error {
	stored := make(chan error, 1)
	s.waiting = append(s.waiting, stored)
	k.touch(key, s)
	k.mu.Unlock()
	notify(k.urgent)
	select {
	case err := <-stored:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave notes that a link was closed. EndGap may still follow.
func (k *gapKeeper) leave(l *Link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.slots[l.gap]; s != nil && s.of(l) != nil {
		s.of(l).closed = k.now()
	}
}

// takeTime bounds the wait for the store when a gap is taken.
const takeTime = 10 * time.Second

// take returns the gap of an agent and deletes it or, where other servers have the store,
// claims it, also if the taker's ctx ends meanwhile. A gap with an error was taken, but may
// still be stored.
func (k *gapKeeper) take(ctx context.Context, key gapKey) (Gap, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
	defer cancel()
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return Gap{}, false, ErrClosed
	}
	s := k.slots[key]
	if s == nil || s.lost {
		k.mu.Unlock()
		return k.takeStored(ctx, key, s)
	}
	g, found := s.take(k.eventTime())
	switch {
	case !found && k.shared(): // another server may have stored one
		k.mu.Unlock()
		return k.takeStored(ctx, key, s)
	case !found:
		k.mu.Unlock()
		return Gap{}, false, nil
	}
	s.opening = k.shared()
	err := k.storeAndUnlock(ctx, key, s)
	if errors.Is(err, errElsewhere) { // what this server had of it is old
		return k.takeStored(ctx, key, s)
	}
	return g, true, err
}

// takeStored takes a gap that is in the store only: that of an earlier process or of another
// server, or of a stream that ended some time ago. before is the slot of the agent.
func (k *gapKeeper) takeStored(ctx context.Context, key gapKey, before *gapSlot) (g Gap, found bool, err error) {
	ref := gapRef(key.tenant)
	if ref.Scope.Validate() != nil {
		return Gap{}, false, nil
	}
	var unreadable error
	var c claim
	err = k.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			g, found, unreadable = Gap{}, false, nil
			values, err := tx.Get(ctx, ref.Keyspace, key.stored())
			if err != nil {
				return err
			}
			if values[0] != nil {
				var stored storedGap
				stored, unreadable = decodeGap(values[0])
				g, found = stored.gap(), unreadable == nil && !stored.empty()
			}
			switch {
			case k.shared():
				if c, err = k.newClaim(); err != nil {
					return err
				}
				tx.Put(ref.Keyspace, key.stored(), encodeGap(storedGap{marked: k.now().UTC(), claim: c}))
			case values[0] != nil:
				tx.Delete(ref.Keyspace, key.stored())
			}
			return nil
		},
		Lazy: true,
	})
	k.claimed(key, before, c, err)
	// What was read is the gap, whether or not it could be deleted.
	return g, found, errors.Join(err, unreadable)
}

// forget deletes the gap of an agent, in memory and in the store.
func (k *gapKeeper) forget(ctx context.Context, tenant, id string) error {
	key := newGapKey(tenant, id)
	k.mu.Lock()
	switch s := k.slots[key]; {
	case k.closed:
		k.mu.Unlock()
		return ErrClosed
	case s != nil: // in the order of the other writes
		s.clear(k.now())
		if err := k.storeAndUnlock(ctx, key, s); err != nil && !errors.Is(err, errElsewhere) || !k.shared() {
			return err
		}
	default:
		k.mu.Unlock()
	}
	ref := gapRef(tenant)
	if ref.Scope.Validate() != nil {
		return nil
	}
	return k.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			values, err := tx.Get(ctx, ref.Keyspace, key.stored())
			if err == nil && values[0] != nil {
				tx.Delete(ref.Keyspace, key.stored())
			}
			return err
		},
		Lazy: true,
	})
}

func (k *gapKeeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	close(k.done)
}

// notify puts a token into a channel with room for one, unless there is one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
