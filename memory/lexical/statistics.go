package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Statistics are the counts of one scope, exact at every moment.
type Statistics struct {
	// Documents is how many living documents the scope has.
	Documents uint64
	// Dead is how many have died, ever.
	Dead uint64
	// Purged is how many of those no longer stand in segments or the tail.
	Purged uint64
	// BodyWords and HeaderWords are the lengths of the living together.
	BodyWords, HeaderWords uint64
	// Sessions is how many sessions have a living document, and InSessions how
	// many living documents have a session.
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

// Unpurged is how many dead documents still stand in segments or in the tail.
func (s Statistics) Unpurged() uint64 { return s.Dead - s.Purged }

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
	headDead        = 12
	headPurged      = 13
	headRebuilding  = 14
	headSweep       = 15
	headAnalysis    = 16
	headReach       = 17
)

func (h head) encode() []byte {
	b := wire.AppendUint(make([]byte, 0, 64), headFormat, layout)
	b = wire.AppendUint(b, headGeneration, uint64(h.generation))
	b = wire.AppendUint(b, headDocuments, h.stats.Documents)
	b = wire.AppendUint(b, headBody, h.stats.BodyWords)
	b = wire.AppendUint(b, headHeader, h.stats.HeaderWords)
	b = wire.AppendUint(b, headLast, uint64(h.stats.Last))
	b = wire.AppendUint(b, headPacked, uint64(h.stats.Packed))
	b = wire.AppendUint(b, headTailBytes, h.stats.TailBytes)
	b = wire.AppendFixed64(b, headIncarnation, h.incarnation)
	b = wire.AppendUint(b, headSessions, h.stats.Sessions)
	b = wire.AppendUint(b, headInSessions, h.stats.InSessions)
	b = wire.AppendUint(b, headDead, h.stats.Dead)
	b = wire.AppendUint(b, headPurged, h.stats.Purged)
	if h.rebuilding {
		b = wire.AppendUint(b, headRebuilding, 1)
	}
	b = wire.AppendUint(b, headSweep, uint64(h.sweep))
	b = wire.AppendText(b, headAnalysis, h.analysis)
	return wire.AppendUint(b, headReach, uint64(h.reach))
}

// headContents is what a stored head says.
type headContents struct {
	active generation
	stats  Statistics
	// incarnation is a random number that this index got when it began: an
	// ordinal's document never changes within it. Zero before the first commit.
	incarnation uint64
	// rebuilding: documents are still missing.
	rebuilding bool
	// sweep is an older generation whose keys are being deleted; zero for none.
	sweep generation
	// analysis names what made the terms of words. Empty before the first
	// commit, and where none was told.
	analysis string
	// reach: a rebuilding goes on to this ordinal at least, the last one that
	// the index before gave out. Zero if it is none or that is not known.
	reach uint32
	// outdated: it has an older layout. Only the generation is known then.
	outdated bool
}

// decodeHead reads a head; nil is that of a scope without documents.
func decodeHead(b []byte) (headContents, error) {
	c := headContents{active: firstGeneration}
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
	if format > 0 && format < layout {
		return headContents{active: c.active, outdated: true}, nil
	}
	if c.stats.Packed > c.stats.Last || c.stats.Purged > c.stats.Dead {
		return c, fmt.Errorf("%w: packed up to %d of %d, purged %d of %d", ErrDamaged, c.stats.Packed, c.stats.Last, c.stats.Purged, c.stats.Dead)
	}
	return c, checkFormat("head", format)
}

func (c *headContents) set(f wire.Field) {
	switch f.Number {
	case headGeneration:
		c.active = generation(f.Value)
	case headDocuments:
		c.stats.Documents = f.Value
	case headBody:
		c.stats.BodyWords = f.Value
	case headHeader:
		c.stats.HeaderWords = f.Value
	case headLast:
		c.stats.Last = uint32(f.Value)
	case headPacked:
		c.stats.Packed = uint32(f.Value)
	case headTailBytes:
		c.stats.TailBytes = f.Value
	case headIncarnation:
		c.incarnation = f.Value
	case headSessions:
		c.stats.Sessions = f.Value
	case headInSessions:
		c.stats.InSessions = f.Value
	case headDead:
		c.stats.Dead = f.Value
	case headPurged:
		c.stats.Purged = f.Value
	case headRebuilding:
		c.rebuilding = f.Value != 0
	case headSweep:
		c.sweep = generation(f.Value)
	case headAnalysis:
		c.analysis = string(f.Bytes)
	case headReach:
		c.reach = uint32(f.Value)
	}
}

// getter is what reading needs of a kv.Reader or a kv.Tx.
type getter interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
}

// head is what every use of the index begins with.
type head struct {
	space
	headContents
	segments segmentList
}

// replaced tells whether the index must begin anew: its layout is an older one,
// or its terms came from another analysis, be that an older or a newer one.
func (h head) replaced(analysis string) bool {
	return h.outdated || h.incarnation != 0 && h.analysis != analysis
}

// ready refuses an index that must be rebuilt first.
func (h head) ready(analysis string) error {
	if h.rebuilding || h.replaced(analysis) {
		return ErrOutdated
	}
	return nil
}

// readHead reads the head and, if asked, the list of segments: in one round, as
// long as the generation is the first. The head may be outdated.
func readHead(ctx context.Context, from getter, scope kv.Scope, withSegments bool) (head, error) {
	h := head{space: space{scope, firstGeneration}}
	for {
		keys := [][]byte{headKey(scope)}
		if withSegments {
			keys = append(keys, h.list())
		}
		values, err := from.Get(ctx, kv.Index, keys...)
		if err != nil {
			return head{}, err
		}
		contents, err := decodeHead(values[0])
		if err != nil {
			return head{}, err
		}
		again := withSegments && contents.active != h.generation
		h.headContents, h.generation = contents, contents.active
		switch {
		case h.outdated:
			return h, nil
		case again:
			continue
		case withSegments:
			err = h.decodeSegments(values[1])
		}
		return h, err
	}
}

// readReady reads the head and the list of segments of an index that needs no
// rebuilding.
func (x *Index) readReady(ctx context.Context, from getter, scope kv.Scope) (head, error) {
	h, err := readHead(ctx, from, scope, true)
	if err == nil {
		err = h.ready(x.analysis)
	}
	return h, err
}

func (h *head) decodeSegments(b []byte) (err error) {
	if h.segments, err = decodeSegmentList(b); err != nil {
		return err
	}
	if !h.segments.covers(h.stats.Packed) {
		return fmt.Errorf("%w: segments do not hold the documents 1 to %d", ErrDamaged, h.stats.Packed)
	}
	return nil
}
