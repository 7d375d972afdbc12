package frame

import (
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Frame holds what ranking and filters need of the documents of a scope, by
// slot. Slots are numbers from 1 in the order of the ordinals. Documents that
// were deleted before the frame was laid out have none, so that they take no
// memory. It describes one state of the scope, never changes, and is shared by
// all who read that state. A deleted document that has a slot has its columns or
// zeros in them: ask Deleted first. Everything else about documents in this package is
// indexed by slot too, except stored data.
type Frame struct {
	Last uint32 // the newest ordinal
	// slotMap gives slots to the ordinals that the frame was laid out with. Each
	// later one has the next slot.
	slotMap *slotMap
	// Deletions is how many documents were deleted: together with last it names the
	// state.
	Deletions uint64

	Body, Header []uint32 // lengths in words
	Session      []uint32 // number of the session, from 1; a document without one has its own number
	Author       []uint32 // index in authors; 0 for none
	Event        []int64  // µs since 1970; 0 unset
	Create       []int64  // µs since 1970; 0 unset
	Expires      []int64  // µs since 1970; 0 never
	Superseded   []int64  // µs since 1970, when the document itself says so; 0 not
	supersedes   []uint32 // the ordinal, not the slot, that it replaces; 0 none
	Importance   []float32
	tier         []uint8
	Flags        []segment.Flags
	Place        []uint32 // its place in the order of arrival, an ordinal

	Deleted bitset.Set
	// Prev and next are the live neighbours in the session, by place; 0 for
	// none. Documents without a session have none.
	Prev, Next []uint32
	// Superseder is the live document that replaces this one; 0 for none.
	Superseder []uint32

	// By number of the session, index 0 unused.
	SessionDigest []uint64 // 0 for a document without a session
	SessionWords  []uint32 // words (body and header) of its live documents
	SessionSize   []uint32 // its live documents
	// Authors are folded names; authors[0] is empty.
	Authors []string

	// Documents, bodyWords and headerWords count what is live.
	Documents, BodyWords, HeaderWords uint64
	// LiveSessions is how many sessions have a live document, documents without a
	// session counting as one each; alone is how many of them those are.
	LiveSessions, WithoutSession uint32

	// derived is what others derive from this very frame, see Derived.
	derived *sync.Map
}

// Length is how many words a document has.
func (f *Frame) Length(o uint32) uint32 { return f.Body[o] + f.Header[o] }

// IsSuperseded reports whether another document has replaced this one.
func (f *Frame) IsSuperseded(o uint32) bool {
	return f.Superseder[o] != 0 || f.Superseded[o] != 0
}

// HasNoSession reports whether the document has no session.
func (f *Frame) HasNoSession(o uint32) bool { return f.SessionDigest[f.Session[o]] == 0 }

// TierOf is the tier of a document.
func (f *Frame) TierOf(o uint32) int {
	if tier := int(f.tier[o]); tier >= 1 && tier <= LongTerm {
		return tier
	}
	return LongTerm
}

// LongTerm is the last tier, and that of a document that names none.
const LongTerm = 4

// derivation is made once.
type derivation struct {
	once  sync.Once
	value any
}

// Derived returns what derive makes of the frame, which is computed once for each
// frame and type.
func Derived[T any](f *Frame, derive func(*Frame) *T) *T {
	var key *T // nil: the type alone is the key
	d, ok := f.derived.Load(key)
	if !ok {
		d, _ = f.derived.LoadOrStore(key, &derivation{})
	}
	made := d.(*derivation)
	made.once.Do(func() { made.value = derive(f) })
	return made.value.(*T)
}
