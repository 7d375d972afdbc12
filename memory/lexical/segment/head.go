package segment

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Statistics are the counts of one scope, exact at every moment.
type Statistics struct {
	// Documents is how many live documents the scope has.
	Documents uint64
	// Deleted is how many were deleted, ever.
	Deleted uint64
	// Purged is how many of those no longer stand in segments or the tail.
	Purged uint64
	// BodyWords and HeaderWords are the lengths of live documents together.
	BodyWords, HeaderWords uint64
	// Sessions is how many sessions have a live document, and InSessions how
	// many live documents have a session.
	Sessions, InSessions uint64
	// Last is the ordinal of the newest document, from 1; zero for none.
	Last uint32
	// Packed is the last ordinal that stands in a segment; those behind it are
	// the tail.
	Packed uint32
	// TailBytes is the size of the tail's entries.
	TailBytes uint64
}

// Tail is how many documents are not packed.
func (s Statistics) Tail() int { return int(s.Last - s.Packed) }

// Unpurged is how many deleted documents still stand in segments or in the tail.
func (s Statistics) Unpurged() uint64 { return s.Deleted - s.Purged }

// By hand: the generated message takes 1.6 times as long to read, 3 times to write (2.1 to 1.3 µs, 1.6 to 0.5 µs).

// The fields of the head, which holds the active generation and its statistics.
const (
	headFormat      = 1
	headGeneration  = 2
	headDocuments   = 3
	headBody        = 4
	headHeader      = 5
	headLast        = 6
	headPacked      = 7
	headTailBytes   = 8
	headIncarnation = 9
	headSessions    = 10
	headInSessions  = 11
	headDeleted     = 12
	headPurged      = 13
	headRebuilding  = 14
	headSweep       = 15
	headAnalysis    = 16
	headReach       = 17
)

// Head is what a stored head says.
type Head struct {
	Active generation
	Stats  Statistics
	// Incarnation is a random number that this index got when it began: an
	// ordinal's document never changes within it. Zero before the first commit.
	Incarnation uint64
	// Rebuilding: documents are still missing.
	Rebuilding bool
	// Sweep is an older generation whose keys are being deleted; zero for none.
	Sweep generation
	// Analysis names what made the terms of words. Empty before the first
	// commit, and where none was given.
	Analysis string
	// Reach: a rebuilding goes on to this ordinal at least, the last one that
	// the index before gave out. Zero if it is none or that is not known.
	Reach uint32
	// Outdated: it has an older layout. Only the generation is known then.
	Outdated bool
}

// Encode returns the stored form.
func (c Head) Encode() []byte {
	b := wire.AppendUint(make([]byte, 0, 64), headFormat, Format)
	b = wire.AppendUint(b, headGeneration, uint64(c.Active))
	b = wire.AppendUint(b, headDocuments, c.Stats.Documents)
	b = wire.AppendUint(b, headBody, c.Stats.BodyWords)
	b = wire.AppendUint(b, headHeader, c.Stats.HeaderWords)
	b = wire.AppendUint(b, headLast, uint64(c.Stats.Last))
	b = wire.AppendUint(b, headPacked, uint64(c.Stats.Packed))
	b = wire.AppendUint(b, headTailBytes, c.Stats.TailBytes)
	b = wire.AppendFixed64(b, headIncarnation, c.Incarnation)
	b = wire.AppendUint(b, headSessions, c.Stats.Sessions)
	b = wire.AppendUint(b, headInSessions, c.Stats.InSessions)
	b = wire.AppendUint(b, headDeleted, c.Stats.Deleted)
	b = wire.AppendUint(b, headPurged, c.Stats.Purged)
	if c.Rebuilding {
		b = wire.AppendUint(b, headRebuilding, 1)
	}
	b = wire.AppendUint(b, headSweep, uint64(c.Sweep))
	b = wire.AppendText(b, headAnalysis, c.Analysis)
	return wire.AppendUint(b, headReach, uint64(c.Reach))
}

// DecodeHead reads a head; nil is that of a scope without documents.
func DecodeHead(b []byte) (Head, error) {
	c := Head{Active: FirstGeneration}
	if b == nil {
		return c, nil
	}
	format := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return c, fmt.Errorf("%w: head: %w", ErrDamaged, err)
		}
		if f.Number == headFormat {
			format = f.Value
		}
		c.set(f)
	}
	if format > 0 && format < Format {
		return Head{Active: c.Active, Outdated: true}, nil
	}
	if c.Stats.Packed > c.Stats.Last || c.Stats.Purged > c.Stats.Deleted {
		return c, fmt.Errorf("%w: packed up to %d of %d, purged %d of %d", ErrDamaged, c.Stats.Packed, c.Stats.Last, c.Stats.Purged, c.Stats.Deleted)
	}
	return c, checkFormat("head", format)
}

func (c *Head) set(f wire.Field) {
	switch f.Number {
	case headGeneration:
		c.Active = generation(f.Value)
	case headDocuments:
		c.Stats.Documents = f.Value
	case headBody:
		c.Stats.BodyWords = f.Value
	case headHeader:
		c.Stats.HeaderWords = f.Value
	case headLast:
		c.Stats.Last = uint32(f.Value)
	case headPacked:
		c.Stats.Packed = uint32(f.Value)
	case headTailBytes:
		c.Stats.TailBytes = f.Value
	case headIncarnation:
		c.Incarnation = f.Value
	case headSessions:
		c.Stats.Sessions = f.Value
	case headInSessions:
		c.Stats.InSessions = f.Value
	case headDeleted:
		c.Stats.Deleted = f.Value
	case headPurged:
		c.Stats.Purged = f.Value
	case headRebuilding:
		c.Rebuilding = f.Value != 0
	case headSweep:
		c.Sweep = generation(f.Value)
	case headAnalysis:
		c.Analysis = string(f.Bytes)
	case headReach:
		c.Reach = uint32(f.Value)
	}
}
