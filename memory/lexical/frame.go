package lexical

// frame holds what ranking and filters need of the documents of a scope, by
// slot: slots are numbers from 1 in the order of the ordinals, which those
// documents do not have that were dead when the frame was laid out, so that of
// many dead ones nothing is left. It describes one state of the scope, never
// changes, and is shared by all who read that state. A dead document that has a
// slot has its columns or zeros in them: ask dead first. Whatever else is about
// documents within this package goes by slot, too, but for what is stored.
type frame struct {
	last uint32 // the newest ordinal
	// sieve gives slots to the ordinals that the frame was laid out with. Each
	// later one has the next slot.
	sieve *sieve
	// killed is how many documents have died: together with last it names the
	// state.
	killed uint64

	body, header []uint32 // lengths in words
	session      []uint32 // number of the session, from 1; a document without one has a number of its own
	author       []uint32 // index in authors; 0 for none
	event        []int64  // µs since 1970; 0 unset
	create       []int64  // µs since 1970; 0 unset
	expires      []int64  // µs since 1970; 0 never
	superseded   []int64  // µs since 1970, when the document itself says so; 0 not
	supersedes   []uint32 // the ordinal, not the slot, that it replaces; 0 none
	importance   []float32
	tier         []uint8
	flags        []Flags
	place        []uint32 // its place in the order of arrival, an ordinal

	dead bitset
	// prev and next are the living neighbours in the session, by place; 0 for
	// none. Documents without a session have none.
	prev, next []uint32
	// superseder is the living document that replaces this one; 0 for none.
	superseder []uint32

	// By number of the session, index 0 unused.
	sessionDigest []uint64 // 0 for a document without a session
	sessionWords  []uint32 // words (body and header) of its living documents
	sessionSize   []uint32 // its living documents
	// authors are folded names; authors[0] is empty.
	authors []string

	// documents, bodyWords and headerWords count the living.
	documents, bodyWords, headerWords uint64
	// sessions is how many sessions have a living document, documents without a
	// session counting as one each; alone is how many of them those are.
	sessions, alone uint32

	// around is what ranking derives from this very frame.
	around *surroundings
	// gates is what selecting derives from it.
	gates *gates
}

// length is how many words a document has.
func (f *frame) length(o uint32) uint32 { return f.body[o] + f.header[o] }

// isSuperseded tells whether another document has replaced this one.
func (f *frame) isSuperseded(o uint32) bool {
	return f.superseder[o] != 0 || f.superseded[o] != 0
}

// sessionOf returns the number of a session by its id; 0 when no document has
// it.
func (f *frame) sessionOf(session string) uint32 {
	digest := sessionDigest(session)
	for number, d := range f.sessionDigest {
		if d == digest && digest != 0 {
			return uint32(number)
		}
	}
	return 0
}

// relations are what a frame says of a document and others, by their ordinals.
type relations struct {
	prev, next, superseder    uint32
	sessionWords, sessionSize uint32
}

func (f *frame) relations(o uint32) relations {
	n := f.session[o]
	return relations{f.ordinal(f.prev[o]), f.ordinal(f.next[o]), f.ordinal(f.superseder[o]), f.sessionWords[n], f.sessionSize[n]}
}

// sums are the counts of a frame.
func (f *frame) sums() [7]uint64 {
	return [7]uint64{uint64(f.last), f.killed, f.documents, f.bodyWords, f.headerWords, uint64(f.sessions), uint64(f.alone)}
}
