//go:build cgo && !norocksdb

package rockskv

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// recentSlots is how many keys are remembered at most, and maxRecentBytes how long the
	// value of one may be: a few MiB in all.
	recentSlots    = 1 << 13
	maxRecentBytes = 512
	// latestMoment is the moment of a reader without a snapshot.
	latestMoment = math.MaxUint64
)

// recent remembers what keys had when they were read last, missing ones too: a call asks
// the same few small keys again and again, and asking RocksDB takes microseconds. It may be
// kept because all writes of the store go through DB.write.
//
// A key has one slot. It is forgotten before a write of it begins, and nothing is
// remembered in its slot until that has ended, so a remembered value is always the one that
// RocksDB would return. A snapshot may use it, and add what it has read itself, only where
// no write to the slot has ended since the snapshot was opened.
type recent struct {
	seed  maphash.Seed
	ended atomic.Uint64 // how many writes
	slots [recentSlots]recentSlot
}

type recentSlot struct {
	mu      sync.Mutex
	writing int    // how many writes of keys of the slot are under way
	changed uint64 // what ended was after the last write of one
	mixed   bool   // more than one was
	entry   *recentEntry
}

// recentEntry is what a key has; a nil value is a missing key. It does not change.
type recentEntry struct {
	keyspace kv.Keyspace
	key      string
	value    []byte
}

func (e *recentEntry) of(ks kv.Keyspace, key []byte) bool {
	return e != nil && e.keyspace == ks && e.key == string(key)
}

// copy is the value for a reader, who owns it.
func (e *recentEntry) copy() []byte {
	if e.value == nil {
		return nil
	}
	return own(e.value)
}

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

func (r *recent) slot(ks kv.Keyspace, key []byte) *recentSlot {
	return &r.slots[(maphash.Bytes(r.seed, key)+uint64(ks))%recentSlots]
}

// now is the moment of a snapshot that is opened next.
func (r *recent) now() uint64 { return r.ended.Load() }

// get returns what is remembered of a key at a moment; since is for remember.
func (r *recent) get(ks kv.Keyspace, key []byte, at uint64) (value []byte, known bool, since uint64) {
	s := r.slot(ks, key)
	s.mu.Lock()
	entry, writing, changed := s.entry, s.writing, s.changed
	s.mu.Unlock()
	switch {
	case changed > at: // it may be too new
		return nil, false, latestMoment
	case entry.of(ks, key):
		return entry.copy(), true, 0
	case writing > 0:
		return nil, false, latestMoment
	}
	return nil, false, changed
}

// remember keeps what a key had when it was read after get had returned since.
func (r *recent) remember(ks kv.Keyspace, key, value []byte, since uint64) {
	if since == latestMoment || len(value) > maxRecentBytes {
		return
	}
	entry := &recentEntry{ks, string(key), value}
	entry.value = entry.copy()
	s := r.slot(ks, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing == 0 && s.changed == since {
		s.entry = entry
	}
}

// recentWrite is a change of one key that is under way.
type recentWrite struct {
	slot *recentSlot
	then *recentEntry // to remember when it has ended, as the key was remembered before
}

// begin forgets a key that is about to be written, together with others; end ends all of
// that.
func (r *recent) begin(writes []recentWrite, ks kv.Keyspace, key, value []byte, remove bool) []recentWrite {
	w := recentWrite{slot: r.slot(ks, key)}
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	w.slot.enter()
	if w.slot.entry.of(ks, key) {
		if len(value) <= maxRecentBytes {
			w.then = &recentEntry{keyspace: ks, key: w.slot.entry.key}
			if !remove {
				w.then.value = own(value)
			}
		}
		w.slot.entry = nil
	}
	return append(writes, w)
}

// enter counts a write. The caller holds mu.
func (s *recentSlot) enter() {
	s.mixed = s.mixed || s.writing > 0
	s.writing++
}

// beginAll is begin for a write that may change any key.
func (r *recent) beginAll() []recentWrite {
	writes := make([]recentWrite, recentSlots)
	for i := range r.slots {
		s := &r.slots[i]
		s.mu.Lock()
		s.enter()
		s.entry = nil
		s.mu.Unlock()
		writes[i].slot = s
	}
	return writes
}

// end is called when writes have ended, well or not.
func (r *recent) end(writes []recentWrite, well bool) {
	at := r.ended.Add(1)
	for _, w := range writes {
		w.slot.mu.Lock()
		w.slot.changed = max(w.slot.changed, at)
		if w.slot.writing--; w.slot.writing == 0 {
			if well && w.then != nil && !w.slot.mixed {
				w.slot.entry = w.then
			}
			w.slot.mixed = false
		}
		w.slot.mu.Unlock()
	}
}
