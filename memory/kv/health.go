package kv

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
)

// Monitored is an Engine that says how it is.
type Monitored interface {
	// Health is the engine's own, the same at every call.
	Health() *Health
}

// Health describes how a store is. The engine notes what it meets, as does
// a check that reads the store back; a server watches. The zero value is that of a store
// about which nothing is known to be wrong. All methods are safe for concurrent use.
type Health struct {
	failing atomic.Bool // condition.Failed is set

	mu        sync.Mutex
	condition Condition     // guarded by mu
	changed   chan struct{} // guarded by mu; nil until somebody asks for it
}

// Condition is how a store is at one moment.
type Condition struct {
	// Failed is why no commit succeeds: an ErrFull, which passes when there is room
	// again, or an ErrFailed, which lasts until the store is opened again. Nil while
	// commits succeed.
	Failed error
	// Damaged is what was found damaged and has not been found whole since, by
	// keyspace. What belongs to no keyspace, as the log does, is under
	// WholeStore.
	Damaged map[Keyspace]error
}

// WholeStore stands for what belongs to no keyspace alone.
const WholeStore = numKeyspaces

// Fail notes that no commit succeeds. An ErrFailed stays whatever comes after it.
func (h *Health) Fail(err error) {
	h.change(func(c *Condition) bool {
		if errors.Is(c.Failed, ErrFailed) || c.Failed != nil && errors.Is(err, ErrFull) {
			return false
		}
		c.Failed = err
		return true
	})
}

// Recover notes that commits succeed, unless the store has failed for good.
func (h *Health) Recover() {
	if !h.failing.Load() {
		return
	}
	h.change(func(c *Condition) bool {
		if errors.Is(c.Failed, ErrFailed) {
			return false
		}
		c.Failed = nil
		return true
	})
}

// Damage notes that something of a keyspace can't be read. The first one stays.
func (h *Health) Damage(ks Keyspace, err error) {
	h.change(func(c *Condition) bool {
		if c.Damaged[ks] != nil {
			return false
		}
		// Those handed out stay as they are.
		damaged := maps.Clone(c.Damaged)
		if damaged == nil {
			damaged = make(map[Keyspace]error)
		}
		damaged[ks] = err
		c.Damaged = damaged
		return true
	})
}

// Whole notes that all of the store was read back and only what is in damaged was
// found damaged.
func (h *Health) Whole(damaged map[Keyspace]error) {
	h.change(func(c *Condition) bool {
		if len(c.Damaged) == 0 && len(damaged) == 0 {
			return false
		}
		c.Damaged = maps.Clone(damaged)
		return true
	})
}

// Condition returns how the store is, and a channel that is closed when that changes.
// Nobody may write to what it returns.
func (h *Health) Condition() (Condition, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.condition, h.changed
}

// change changes the condition if change says that it did.
func (h *Health) change(change func(*Condition) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !change(&h.condition) {
		return
	}
	h.failing.Store(h.condition.Failed != nil)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// String is for logs: ok, or what is wrong.
func (c Condition) String() string {
	text := ""
	if c.Failed != nil {
		text = c.Failed.Error()
	}
	for ks := Keyspace(0); ks <= WholeStore; ks++ {
		if err := c.Damaged[ks]; err != nil {
			text += fmt.Sprintf("; %s: %v", ks, err)
		}
	}
	if text == "" {
		return "ok"
	}
	return text
}
