package history

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// DefaultMemoBytes bounds a Memo: it is enough for the folds of a hundred long
// sessions.
const DefaultMemoBytes = 64 << 20

// What a memo takes and keeps.
const (
	// memoTextBytes: shorter texts are read again sooner than they are looked up.
	memoTextBytes = 1 << 10
	// memoNameBytes is roughly the memory of a name or a line, without the text it is a
	// part of; memoFixedBytes is the fixed memory of a text.
	memoNameBytes  = 48
	memoFixedBytes = 512
)

// Memo remembers what folds and other long texts of prompts name, so that a
// batch reads only what is new. It changes no result. It is safe for concurrent
// use.
type Memo struct {
	// texts has them by the text itself, or by the hash of a long one.
	texts *cache.Cache[any, remembered]
}

// remembered describes a text.
type remembered struct {
	names *names
	best  []excerpt.Identifier
}

// hash is the key of a text that is too long to be kept.
type hash [sha256.Size]byte

// bytes is about what it takes under that key.
func (r remembered) bytes(key any) int {
	n := memoFixedBytes
	if text, whole := key.(string); whole {
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
	bytes = cmp.Or(bytes, DefaultMemoBytes)
	return &Memo{texts: cache.New[any, remembered](bytes)}
}

// of returns what a text names, for reading only.
func (m *Memo) of(text string) *names {
	if known, ok := m.texts.Get(text); ok {
		return known.names
	}
	n := newNames()
	n.add(text)
	m.keep(text, remembered{names: n})
	return n
}

// ranked returns what find returns of parts of a text, for reading only, without
// the text's memory.
func (m *Memo) ranked(parts []string, find func() []excerpt.Identifier) []excerpt.Identifier {
	key := hash(sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
	if known, ok := m.texts.Get(key); ok {
		return known.best
	}
	best := slices.Clone(find())
	for i := range best {
		best[i].Text = strings.Clone(best[i].Text)
	}
	m.keep(key, remembered{best: best})
	return best
}

func (m *Memo) keep(key any, r remembered) { m.texts.Put(key, r, r.bytes(key)) }
