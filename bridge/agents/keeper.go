package agents

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// gapKeeper keeps the gaps of streams that are open, or were until just now, in
// memory, and sees to it that they are stored. Only its own goroutine writes
// them, so that what is stored never goes back in time.
type gapKeeper struct {
	writer *kv.Writer
	now    func() time.Time
	logger *slog.Logger
	keep   time.Duration
	dirty  chan struct{} // holds a token when something is to be stored
	urgent chan struct{} // holds a token when somebody waits for it
	done   chan struct{}

	mu      sync.Mutex // guards the fields below, and the slots
	closed  bool
	version uint64
	slots   map[gapKey]*gapSlot
	changed map[gapKey]*gapSlot // those of slots that are not stored as they are
	sweeps  map[string][]byte   // tenants with gaps: where the next sweep begins
}

// gapSlot is the gap of one agent.
type gapSlot struct {
	link     *Link     // who may mark it; nil for nobody any more
	closed   time.Time // when that link was closed without a word on how it ended
	marks    marks
	marked   time.Time
	ended    time.Time // zero while the stream is open
	gone     bool      // it is to be deleted
	version  uint64    // raised with each change
	stored   uint64    // the version in the store
	storedAt time.Time
	waiting  []chan<- error // who waits for the next store
}

func newGapKeeper(writer *kv.Writer, opts Options) *gapKeeper {
	return &gapKeeper{
		writer:  writer,
		now:     opts.Now,
		logger:  opts.Logger,
		keep:    opts.KeepGaps,
		dirty:   make(chan struct{}, 1),
		urgent:  make(chan struct{}, 1),
		done:    make(chan struct{}),
		slots:   make(map[gapKey]*gapSlot),
		changed: make(map[gapKey]*gapSlot),
		sweeps:  make(map[string][]byte),
	}
}

// mark changes what a link has been given.
func (k *gapKeeper) mark(l *Link, change func(*marks) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.slotOf(l)
	if s == nil {
		return
	}
	if changed := change(&s.marks); changed || s.version == 0 {
		k.touch(l.gap, s)
		notify(k.dirty)
	}
}

// slotOf returns the slot that a link may mark, nil for none. The caller holds
// mu.
func (k *gapKeeper) slotOf(l *Link) *gapSlot {
	if k.closed || l.gapLost || l.id == "" || gapRef(l.tenant).Scope.Validate() != nil {
		return nil
	}
	s := k.slots[l.gap]
	switch {
	case s == nil:
	case s.link == l:
		return s
	case s.link != nil && s.link.generation > l.generation:
		l.gapLost = true
		return nil
	default:
		s.lose()
	}
	fresh := &gapSlot{link: l}
	if s != nil {
		fresh.waiting = s.waiting
	}
	k.slots[l.gap] = fresh
	return fresh
}

// lose takes the slot from its link for ever.
func (s *gapSlot) lose() {
	if s.link != nil {
		s.link.gapLost = true
		s.link = nil
	}
}

func (s *gapSlot) snapshot() storedGap {
	g := storedGap{s.marks.gap(), s.marked}
	g.Ended = s.ended
	return g
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

// finish ends the slot of a link and waits until that is stored.
func (k *gapKeeper) finish(ctx context.Context, l *Link, abnormal bool) error {
	k.mu.Lock()
	s := k.slots[l.gap]
	if s == nil || s.link != l {
		k.mu.Unlock()
		return nil
	}
	if k.closed {
		k.mu.Unlock()
		return ErrClosed
	}
	s.lose()
	if abnormal {
		s.ended = k.now().UTC()
	} else {
		s.gone = true
	}
	return k.storeAndUnlock(ctx, l.gap, s)
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

// leave notes that a link was closed. How it ended may still be said.
func (k *gapKeeper) leave(l *Link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.slots[l.gap]; s != nil && s.link == l {
		s.closed = k.now()
	}
}

// take returns the gap of an agent and deletes it.
func (k *gapKeeper) take(ctx context.Context, key gapKey) (Gap, bool, error) {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return Gap{}, false, ErrClosed
	}
	s := k.slots[key]
	if s == nil {
		k.mu.Unlock()
		return k.takeStored(ctx, key)
	}
	if s.gone {
		k.mu.Unlock()
		return Gap{}, false, nil
	}
	g := s.snapshot().gap()
	s.lose()
	s.gone = true
	err := k.storeAndUnlock(ctx, key, s)
	return g, err == nil, err
}

// takeStored takes a gap of which nothing is in memory: that of a process before
// this one, or of a stream that ended a while ago.
func (k *gapKeeper) takeStored(ctx context.Context, key gapKey) (g Gap, found bool, err error) {
	ref := gapRef(key.tenant)
	if ref.Scope.Validate() != nil {
		return Gap{}, false, nil
	}
	var unreadable error
	err = k.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			g, found, unreadable = Gap{}, false, nil
			values, err := tx.Get(ctx, ref.Keyspace, key.stored())
			if err != nil || values[0] == nil {
				return err
			}
			var stored storedGap
			stored, unreadable = decodeGap(values[0])
			g, found = stored.gap(), unreadable == nil
			tx.Delete(ref.Keyspace, key.stored())
			return nil
		},
		Lazy: true,
	})
	return g, found, errors.Join(err, unreadable)
}

// forget deletes the gap of an agent, whoever has it.
func (k *gapKeeper) forget(ctx context.Context, tenant, id string) error {
	_, _, err := k.take(ctx, newGapKey(tenant, id))
	if errors.Is(err, ErrDamaged) {
		return nil
	}
	return err
}

func (k *gapKeeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	close(k.done)
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
