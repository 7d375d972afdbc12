package agents

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

// Pace of storing gaps.
const (
	// flushPause is the least time between two commits, and so how much a killed
	// process loses. One commit stores all streams that were marked meanwhile.
	flushPause = 10 * time.Millisecond
	// flushBytes ends a commit: a larger one is not faster.
	flushBytes = 4 << 20
	// flushRate, in bytes a second, makes the pause longer after large commits, so that
	// gaps do not slow down more important writes.
	flushRate = 8 << 20
	// flushRetry is the pause after a failure.
	flushRetry = time.Second
)

// The upkeep of gaps that no stream takes.
const (
	upkeepEvery = time.Minute
	// upkeepBatch bounds the gaps that are looked at in one commit.
	upkeepBatch = 256
	// refreshes is how often the gap of an open stream is written again within the time
	// that a gap is kept, so that it does not look old.
	refreshes = 4
)

// run stores what changes, until the keeper is closed, and then what is left.
func (k *gapKeeper) run() {
	upkeep := time.NewTicker(upkeepEvery)
	defer upkeep.Stop()
	var next time.Time // no commit before it unless somebody waits
	for {
		select {
		case <-k.done:
			if _, err := k.flush(); err != nil {
				k.logger.Error("gaps of agents are not stored", "error", err)
			}
			if err := k.leases.Close(); err != nil {
				k.logger.Warn("leases of gaps of agents are not given back, they run out", "error", err)
			}
			return
		case <-upkeep.C:
			k.upkeep()
			continue
		case <-k.urgent:
		case <-k.dirty:
			if !k.pause(time.Until(next)) {
				continue
			}
		}
		pause, err := k.flush()
		if err != nil {
			k.logger.Error("gaps of agents are not stored", "error", err)
			pause = flushRetry
			notify(k.dirty)
		}
		next = time.Now().Add(pause)
	}
}

// pause waits, but no longer than until somebody waits for the next commit. False means
// that the keeper is closed.
func (k *gapKeeper) pause(wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.urgent:
	case <-k.done:
		return false
	}
	return true
}

// gapWrite is one slot on its way into the store.
type gapWrite struct {
	key     gapKey
	slot    *gapSlot
	version uint64
	value   []byte // nil deletes
	handed  *Gap   // gapSlot.handed
	claim   claim  // which the stored gap must have; zero until there was one
	waiting []chan<- error

	written claim // with which it was stored
	denied  bool  // not stored, because another server has the gap
}

// flush stores all that has changed and returns how long to wait before the next.
func (k *gapKeeper) flush() (time.Duration, error) {
	size := 0
	var failed error
	upTo := k.latest()
	for {
		tenant, writes, bytes := k.collect(upTo)
		if len(writes) == 0 {
			break
		}
		err := k.commit(tenant, writes)
		k.settle(writes, err)
		size += bytes
		failed = errors.Join(failed, err)
	}
	return max(flushPause, time.Duration(size)*time.Second/flushRate), failed
}

func (k *gapKeeper) latest() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version
}

// collect encodes what has changed of one tenant up to a version, as much as
// fits a commit. What changes while others are stored waits for the next time.
func (k *gapKeeper) collect(upTo uint64) (tenant string, writes []gapWrite, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, s := range k.changed {
		if len(writes) > 0 && key.tenant != tenant || s.version > upTo {
			continue
		}
		w := gapWrite{key: key, slot: s, version: s.version, waiting: s.waiting, handed: s.handed, claim: s.claim}
		if g, ok := s.snapshot(); ok {
			w.value = encodeGap(g)
		}
		s.waiting = nil
		delete(k.changed, key)
		tenant, writes = key.tenant, append(writes, w)
		if size += len(w.value) + len(tenant) + gapKeyBytes; size > flushBytes {
			break
		}
	}
	return tenant, writes, size
}

// gapKeyBytes is roughly what a key takes in addition to the tenant.
const gapKeyBytes = 48

func (k *gapKeeper) commit(tenant string, writes []gapWrite) error {
	ref := gapRef(tenant)
	return k.writer.Do(context.Background(), kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			if k.shared() {
				if err := k.guard(ctx, tx, ref, writes); err != nil {
					return err
				}
			}
			for _, w := range writes {
				switch {
				case w.denied:
				case w.value == nil:
					tx.Delete(ref.Keyspace, w.key.stored())
				default:
					tx.Put(ref.Keyspace, w.key.stored(), append(slices.Clip(w.value), w.written.encode()...))
				}
			}
			return nil
		},
		Lazy: true,
	})
}

// settle wakes waiters for the commit, and drops slots whose stream is closed.
// Slots that could not be stored are tried again while their stream is open. Streams whose
// gap another server has are handed over.
func (k *gapKeeper) settle(writes []gapWrite, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	for _, w := range writes {
		outcome := err
		if err == nil && w.denied {
			outcome = errElsewhere
		}
		for _, waiting := range w.waiting {
			waiting <- outcome
		}
		s := w.slot
		if k.slots[w.key] != s {
			continue
		}
		if err == nil && s.claim == w.claim {
			s.settle(&w, k.eventTime())
		}
		changed := s.version != w.version
		switch {
		case len(s.streams) == 0 && !changed && !s.opening:
			delete(k.slots, w.key)
		case err != nil:
			k.version++ // or this flush would go round in circles
			s.version = k.version
			k.changed[w.key] = s
		default:
			s.stored, s.storedAt = w.version, now
		}
	}
}

// settle takes in the outcome of a commit under the claim that the slot still has.
func (s *gapSlot) settle(w *gapWrite, at time.Time) {
	switch {
	case w.denied:
		s.lose(at)
	case w.handed != nil && w.handed == s.handed:
		s.claim = w.written
		s.lose(at)
	default:
		s.claim = w.written
	}
}

// upkeep rewrites open gaps before they look old, and deletes old ones.
func (k *gapKeeper) upkeep() {
	for tenant, from := range k.refresh() {
		next, err := k.sweepLeased(tenant, from)
		if errors.Is(err, lease.ErrHeld) {
			continue
		}
		if err != nil {
			k.logger.Warn("old gaps of agents are not deleted", "tenant", tenant, "error", err)
			continue
		}
		k.mu.Lock()
		k.sweeps[tenant] = next
		k.mu.Unlock()
	}
}

// refresh marks the slots to write again, ends those whose stream was closed without
// EndGap, and returns where to sweep.
func (k *gapKeeper) refresh() map[string][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	for key, s := range k.slots {
		ended := s.endClosed(now.Add(-upkeepEvery))
		old := s.newest() != nil && s.stored == s.version && now.Sub(s.storedAt) >= k.keep/refreshes
		if ended || old {
			k.touch(key, s)
			notify(k.dirty)
		}
	}
	return maps.Clone(k.sweeps)
}

// endClosed ends, with their last mark, the streams that were closed before a time. It
// reports whether that changes the stored data.
func (s *gapSlot) endClosed(by time.Time) (changed bool) {
	for _, st := range slices.Backward(slices.Clone(s.streams)) {
		if !st.closed.IsZero() && !st.closed.After(by) {
			changed = s.end(st, true, s.marked) || changed
		}
	}
	return changed
}

// sweepLeased does what sweepTenant says, under a lease if there are any gaps.
func (k *gapKeeper) sweepLeased(tenant string, from []byte) (next []byte, err error) {
	first := kv.Prefix(gapRef(tenant).Scope.Key(tagGap))
	first.Limit = 1
	for _, err := range k.engine.Scan(context.Background(), kv.System, first) {
		if err != nil {
			return nil, err
		}
		err = k.leases.Do(context.Background(), lease.Tenant(tenant, "gaps").Every(upkeepEvery), func(ctx context.Context) (err error) {
			next, err = k.sweepTenant(ctx, tenant, from)
			return err
		})
		return next, err
	}
	return nil, nil
}

// sweepTenant deletes some gaps of a tenant that are too old to be taken, and
// returns where to go on next time.
func (k *gapKeeper) sweepTenant(ctx context.Context, tenant string, from []byte) (next []byte, err error) {
	ref := gapRef(tenant)
	prefix := ref.Scope.Key(tagGap)
	err = k.writer.Do(ctx, lease.Fence(ctx, kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			next = nil
			r := kv.Prefix(prefix)
			r.Limit = upkeepBatch
			if from != nil {
				r.Start = from
			}
			seen := 0
			for pair, err := range tx.Scan(ctx, ref.Keyspace, r) {
				if err != nil {
					return err
				}
				if seen++; seen == upkeepBatch {
					next = append(bytes.Clone(pair.Key), 0)
				}
				if k.forgotten(pair.Value) {
					tx.Delete(ref.Keyspace, pair.Key)
				}
			}
			return nil
		},
		Lazy: true,
	}))
	return next, err
}

// forgotten reports whether a stored gap is too old to be taken. One that can't be read is
// not: TakeGap reports it.
func (k *gapKeeper) forgotten(value []byte) bool {
	g, err := decodeGap(value)
	return err == nil && k.now().Sub(g.gap().Ended) > k.keep
}
