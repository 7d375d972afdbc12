package history

import (
	"container/list"
	"sync"
)

// DefaultMemoBytes bounds a Memo: it is enough for the folds of a hundred long
// sessions.
const DefaultMemoBytes = 64 << 20

// What a memo takes and keeps.
const (
	// memoTextBytes: shorter texts are read again sooner than they are looked up.
	memoTextBytes = 1 << 10
	// memoFactor is about how many bytes are kept for each byte of a text.
	memoFactor = 4
)

// Memo remembers what folds and other long texts of prompts name, so that a
// batch reads only what is new. It changes no result. It is safe for concurrent
// use.
type Memo struct {
	limit int

	mu    sync.Mutex
	bytes int
	texts map[string]*list.Element
	// order has the text that was asked for last at its front.
	order list.List
}

// remembered is an element of a Memo's order.
type remembered struct {
	text  string
	names *names
}

// NewMemo returns a memo that takes about so many bytes; 0 means
// DefaultMemoBytes. What was not asked for longest is forgotten first.
func NewMemo(bytes int) *Memo {
	setDefault(&bytes, DefaultMemoBytes)
	return &Memo{limit: bytes, texts: make(map[string]*list.Element)}
}

// of returns what a text names, for reading only.
func (m *Memo) of(text string) *names {
	if n := m.known(text); n != nil {
		return n
	}
	n := newNames()
	n.add(text)
	m.keep(text, n)
	return n
}

func (m *Memo) known(text string) *names {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.texts[text]
	if at == nil {
		return nil
	}
	m.order.MoveToFront(at)
	return at.Value.(remembered).names
}

func (m *Memo) keep(text string, n *names) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[text] != nil {
		return
	}
	m.texts[text] = m.order.PushFront(remembered{text, n})
	m.bytes += len(text) * memoFactor
	for m.bytes > m.limit && m.order.Len() > 0 {
		oldest := m.order.Remove(m.order.Back()).(remembered)
		delete(m.texts, oldest.text)
		m.bytes -= len(oldest.text) * memoFactor
	}
}
