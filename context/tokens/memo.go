package tokens

import (
	"crypto/sha256"
	"sync"
)

// memoKey is what was asked about a text: its count, or its ends.
type memoKey struct {
	sum        [sha256.Size]byte
	encoding   Encoding
	ends       bool
	head, tail int
}

// measured is the answer: a count, or two places in the text.
type measured struct {
	first, second int
}

// memo remembers in two generations: when the young one is full it becomes the
// old one, and what was not asked for since is forgotten. That bounds it to
// twice its limit without keeping an order.
type memo struct {
	limit int

	mu         sync.Mutex // guards the fields below
	young, old map[memoKey]measured
}

func newMemo(limit int) *memo {
	return &memo{limit: limit, young: make(map[memoKey]measured), old: make(map[memoKey]measured)}
}

func (m *memo) get(key memoKey) (measured, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.young[key]; ok {
		return found, true
	}
	found, ok := m.old[key]
	if ok {
		m.add(key, found)
	}
	return found, ok
}

func (m *memo) put(key memoKey, found measured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(key, found)
}

// add needs the lock held.
func (m *memo) add(key memoKey, found measured) {
	if len(m.young) >= m.limit {
		clear(m.old) // and fill it again, so that nothing is allocated
		m.young, m.old = m.old, m.young
	}
	m.young[key] = found
}
