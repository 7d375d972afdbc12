// Package recent remembers what keys of a store had when they were read last.
package recent

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxKeys is how many keys are remembered at most, and maxBytes how long the
	// value of one may be: a few MiB in all.
	maxKeys  = 1 << 13
	maxBytes = 512
	// Latest is the moment of a reader without a snapshot.
	Latest = math.MaxUint64
)

// Keys remembers what keys had when they were read last, missing ones too: a call asks
// the same few small keys again and again, and asking RocksDB takes microseconds. It may be
// kept because all writes of the store go through Begin, or BeginAll, and End.
//
// A key has one slot. It is forgotten before a write of it begins, and nothing is
// remembered in its slot until that has ended, so a remembered value is always the one that
// RocksDB would return. A snapshot may use it, and add what it has read itself, only where
// no write to the slot has ended since the snapshot was opened.
type Keys struct {
	seed  maphash.Seed
	ended atomic.Uint64 // how many writes
	slots [maxKeys]slot
}

type slot struct {
	mu      sync.Mutex
	writing int    // how many writes of keys of the slot are under way
	changed uint64 // what ended was after the last write of one
	mixed   bool   // more than one was
	entry   *entry
}

// entry is what a key has; a nil value is a missing key. It does not change.
type entry struct {
	keyspace kv.Keyspace
	key      string
	value    []byte
}

func (e *entry) of(ks kv.Keyspace, key []byte) bool {
	return e != nil && e.keyspace == ks && e.key == string(key)
}

// copy is the value for a reader, who owns it.
func (e *entry) copy() []byte {
	if e.value == nil {
		return nil
	}
	return own(e.value)
}

// own copies a value, which is not nil however short it is.
func own(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// New returns one that remembers nothing.
func New() *Keys { return &Keys{seed: maphash.MakeSeed()} }

func (r *Keys) slot(ks kv.Keyspace, key []byte) *slot {
	return &r.slots[(maphash.Bytes(r.seed, key)+uint64(ks))%maxKeys]
}

// Now is the moment of a snapshot that is opened next.
func (r *Keys) Now() uint64 { return r.ended.Load() }

// Get returns what is remembered of a key at a moment; since is for Remember.
func (r *Keys) Get(ks kv.Keyspace, key []byte, at uint64) (value []byte, known bool, since uint64) {
	s := r.slot(ks, key)
	s.mu.Lock()
	entry, writing, changed := s.entry, s.writing, s.changed
	s.mu.Unlock()
	switch {
	case changed > at: // it may be too new
		return nil, false, Latest
	case entry.of(ks, key):
		return entry.copy(), true, 0
	case writing > 0:
		return nil, false, Latest
	}
	return nil, false, changed
}

// Remember keeps what a key had when it was read after Get had returned since.
func (r *Keys) Remember(ks kv.Keyspace, key, value []byte, since uint64) {
	if since == Latest || len(value) > maxBytes {
		return
	}
	read := &entry{ks, string(key), value}
	read.value = read.copy()
	s := r.slot(ks, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing == 0 && s.changed == since {
		s.entry = read
	}
}

// Write is a change of one key that is under way.
type Write struct {
	slot *slot
	then *entry // to remember when it has ended, as the key was remembered before
}

// Begin forgets a key that is about to be written, together with others; End ends all of
// that.
func (r *Keys) Begin(writes []Write, ks kv.Keyspace, key, value []byte, remove bool) []Write {
	w := Write{slot: r.slot(ks, key)}
	w.slot.mu.Lock()
	defer w.slot.mu.Unlock()
	w.slot.enter()
	if w.slot.entry.of(ks, key) {
		if len(value) <= maxBytes {
			w.then = &entry{keyspace: ks, key: w.slot.entry.key}
			if !remove {
				w.then.value = own(value)
			}
		}
		w.slot.entry = nil
	}
	return append(writes, w)
}

// enter counts a write. The caller holds mu.
func (s *slot) enter() {
	s.mixed = s.mixed || s.writing > 0
	s.writing++
}

// BeginAll is Begin for a write that may change any key.
func (r *Keys) BeginAll() []Write {
	writes := make([]Write, maxKeys)
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

// End is called when writes have ended, well or not.
func (r *Keys) End(writes []Write, well bool) {
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
