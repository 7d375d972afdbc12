package tokens

import (
	"crypto/sha256"
	"sync"
)

// memoKey is what was asked about a text. Head and tail are zero for its
// count.
type memoKey struct {
	sum        [sha256.Size]byte
	encoding   Encoding
	head, tail int
}

// measured is the answer: a count, or two places in the text.
type measured struct {
	first, second int
	exact         bool
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
	return &memo{limit: limit, young: make(map[memoKey]measured)}
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
		m.young, m.old = make(map[memoKey]measured), m.young
	}
	m.young[key] = found
}
