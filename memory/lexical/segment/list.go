package segment

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Info is what the list says of a segment.
type Info struct {
	ID uint32
	// Stamp is a random number that no other segment has, so that what a
	// process remembers of a segment can't be mistaken for another's.
	Stamp       uint64
	First, Last uint32 // ordinals
	Level       uint32 // how often its documents were merged
	Bytes       uint64 // of its chunks
	// Purged is how many of its documents were deleted when it was written, and
	// so have nothing in it.
	Purged uint64
}

// Documents is how many documents the segment has, deleted ones included.
func (s Info) Documents() int { return int(s.Last-s.First) + 1 }

// List is the list of segments in the order of their ordinals, and what
// is under way with them.
type List struct {
	next uint32 // the id of the next segment
	// Segments are the ones to read.
	Segments []Info
	// Building is the segment that a merge is writing, in several commits.
	Building *Info
	// Dropped are ids of segments that no reader needs any more and whose keys
	// are still there.
	Dropped []uint32
}

// Bytes is the size of the chunks of all segments.
func (l List) Bytes() (sum uint64) {
	for _, s := range l.Segments {
		sum += s.Bytes
	}
	return sum
}

// Covers reports whether the segments hold the documents 1 to last without a gap.
func (l List) Covers(last uint32) bool {
	end := uint32(0)
	for _, s := range l.Segments {
		if s.First != end+1 {
			return false
		}
		end = s.Last
	}
	return end == last
}

// TakeID gives out the next id.
func (l *List) TakeID() uint32 {
	l.next++
	return l.next
}

// Abandon gives up the segment that a merge never finished.
func (l *List) Abandon() {
	if l.Building != nil {
		l.Dropped = append(l.Dropped, l.Building.ID)
		l.Building = nil
	}
}

// Replace puts a merged segment in the place of its inputs, and reports whether all of them
// were in the list.
func (l *List) Replace(inputs []Info, merged Info) bool {
	at := slices.IndexFunc(l.Segments, func(s Info) bool { return s.Stamp == inputs[0].Stamp })
	if at < 0 || at+len(inputs) > len(l.Segments) {
		return false
	}
	for i, in := range inputs {
		if l.Segments[at+i] != in {
			return false
		}
		l.Dropped = append(l.Dropped, in.ID)
	}
	l.Segments = slices.Replace(l.Segments, at, at+len(inputs), merged)
	return true
}

// The fields of the list and of a segment in it.
//
// By hand: the generated message takes 3 times as long to read (2.6 to 0.8 µs), which each search does.
const (
	listFormat   = 1
	listNext     = 2
	listSegment  = 3
	listBuilding = 4
	listDropped  = 5

	segmentID     = 1
	segmentStamp  = 2
	segmentFirst  = 3
	segmentLast   = 4
	segmentLevel  = 5
	segmentBytes  = 6
	segmentPurged = 7
)

// Encode returns the stored form.
func (l List) Encode() []byte {
	b := wire.AppendUint(nil, listFormat, Format)
	b = wire.AppendUint(b, listNext, uint64(l.next))
	for _, s := range l.Segments {
		b = wire.AppendItem(b, listSegment, s.encode())
	}
	if l.Building != nil {
		b = wire.AppendItem(b, listBuilding, l.Building.encode())
	}
	for _, id := range l.Dropped {
		b = wire.AppendUint(b, listDropped, uint64(id))
	}
	return b
}

func (s Info) encode() []byte {
	b := wire.AppendUint(nil, segmentID, uint64(s.ID))
	b = wire.AppendFixed64(b, segmentStamp, s.Stamp)
	b = wire.AppendUint(b, segmentFirst, uint64(s.First))
	b = wire.AppendUint(b, segmentLast, uint64(s.Last))
	b = wire.AppendUint(b, segmentLevel, uint64(s.Level))
	b = wire.AppendUint(b, segmentBytes, s.Bytes)
	return wire.AppendUint(b, segmentPurged, s.Purged)
}

// DecodeList reads what Encode wrote; nil is an empty list.
func DecodeList(b []byte) (List, error) {
	var l List
	if b == nil {
		return l, nil
	}
	format := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return List{}, fmt.Errorf("%w: list of segments: %w", ErrDamaged, err)
		}
		switch f.Number {
		case listFormat:
			format = f.Value
		case listNext:
			l.next = uint32(f.Value)
		case listDropped:
			l.Dropped = append(l.Dropped, uint32(f.Value))
		case listSegment, listBuilding:
			s, err := decodeInfo(f.Bytes)
			if err != nil {
				return List{}, err
			}
			if f.Number == listBuilding {
				l.Building = &s
			} else {
				l.Segments = append(l.Segments, s)
			}
		}
	}
	return l, checkFormat("list of segments", format)
}

func decodeInfo(b []byte) (Info, error) {
	var s Info
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Info{}, fmt.Errorf("%w: segment: %w", ErrDamaged, err)
		}
		switch f.Number {
		case segmentID:
			s.ID = uint32(f.Value)
		case segmentStamp:
			s.Stamp = f.Value
		case segmentFirst:
			s.First = uint32(f.Value)
		case segmentLast:
			s.Last = uint32(f.Value)
		case segmentLevel:
			s.Level = uint32(f.Value)
		case segmentBytes:
			s.Bytes = f.Value
		case segmentPurged:
			s.Purged = f.Value
		}
	}
	if s.First == 0 || s.Last < s.First {
		return Info{}, fmt.Errorf("%w: segment from %d to %d", ErrDamaged, s.First, s.Last)
	}
	return s, nil
}
