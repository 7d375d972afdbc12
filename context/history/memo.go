package history

import (
	"container/list"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
)

// DefaultMemoBytes bounds a Memo: it is enough for the folds of a hundred long
// sessions.
const DefaultMemoBytes = 64 << 20

// What a memo takes and keeps.
const (
	// memoTextBytes: shorter texts are read again sooner than they are looked up.
	memoTextBytes = 1 << 10
	// memoNameBytes is about what a name or a line takes, beside the text that it
	// is a part of; memoFixedBytes a text, whatever it says.
	memoNameBytes  = 48
	memoFixedBytes = 512
)

// Memo remembers what folds and other long texts of prompts name, so that a
// batch reads only what is new. It changes no result. It is safe for concurrent
// use.
type Memo struct {
	limit int

	mu    sync.Mutex
	bytes int
	texts map[any]*list.Element
	// order has the text that was asked for last at its front.
	order list.List
}

// remembered is an element of a Memo's order.
type remembered struct {
	key   any // a text, or the hash of a long one
	names *names
	best  []excerpt.Identifier
}

// hash is the key of a text that is too long to be kept.
type hash [sha256.Size]byte

// bytes is about what it takes.
func (r remembered) bytes() int {
	n := memoFixedBytes
	if text, whole := r.key.(string); whole {
		n += len(text) + memoNameBytes*(len(r.names.ids)+len(r.names.lines))
	}
	for i := range r.best {
		n += memoNameBytes + len(r.best[i].Text)
	}
	return n
}

// NewMemo returns a memo that takes about so many bytes; 0 means
// DefaultMemoBytes. What was not asked for longest is forgotten first.
func NewMemo(bytes int) *Memo {
	setDefault(&bytes, DefaultMemoBytes)
	return &Memo{limit: bytes, texts: make(map[any]*list.Element)}
}

// of returns what a text names, for reading only.
func (m *Memo) of(text string) *names {
	if known, ok := m.known(text); ok {
		return known.names
	}
	n := newNames()
	n.add(text)
	m.keep(remembered{key: text, names: n})
	return n
}

// ranked returns what find returns of parts of a text, for reading only, without
// the text's memory.
func (m *Memo) ranked(parts []string, find func() []excerpt.Identifier) []excerpt.Identifier {
	key := hash(sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
	if known, ok := m.known(key); ok {
		return known.best
	}
	best := slices.Clone(find())
	for i := range best {
		best[i].Text = strings.Clone(best[i].Text)
	}
	m.keep(remembered{key: key, best: best})
	return best
}

func (m *Memo) known(key any) (remembered, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.texts[key]
	if at == nil {
		return remembered{}, false
	}
	m.order.MoveToFront(at)
	return at.Value.(remembered), true
}

func (m *Memo) keep(added remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[added.key] != nil {
		return
	}
	m.texts[added.key] = m.order.PushFront(added)
	m.bytes += added.bytes()
	for m.bytes > m.limit && m.order.Len() > 0 {
		oldest := m.order.Remove(m.order.Back()).(remembered)
		delete(m.texts, oldest.key)
		m.bytes -= oldest.bytes()
	}
}
