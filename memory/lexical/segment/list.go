package segment

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
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

// Encode returns the stored form.
func (l List) Encode() []byte {
	m := &storev1.Segments{Format: Format, LastId: uint64(l.next)}
	for _, s := range l.Segments {
		m.Segments = append(m.Segments, s.stored())
	}
	if l.Building != nil {
		m.Building = l.Building.stored()
	}
	for _, id := range l.Dropped {
		m.Dropped = append(m.Dropped, uint64(id))
	}
	return wire.Marshal(m)
}

func (s Info) stored() *storev1.Segment {
	return &storev1.Segment{
		Id: uint64(s.ID), Stamp: &s.Stamp, First: uint64(s.First), Last: uint64(s.Last), Level: uint64(s.Level), Bytes: s.Bytes, LeftOut: s.Purged,
	}
}

// DecodeList reads what Encode wrote; nil is an empty list.
func DecodeList(b []byte) (l List, err error) {
	if b == nil {
		return l, nil
	}
	var m storev1.Segments
	if err := wire.Unmarshal(b, &m); err != nil {
		return List{}, fmt.Errorf("%w: list of segments: %w", ErrDamaged, err)
	}
	l.next = uint32(m.LastId)
	for _, id := range m.Dropped {
		l.Dropped = append(l.Dropped, uint32(id))
	}
	for _, s := range m.Segments {
		info, err := infoOf(s)
		if err != nil {
			return List{}, err
		}
		l.Segments = append(l.Segments, info)
	}
	if m.Building != nil {
		info, err := infoOf(m.Building)
		if err != nil {
			return List{}, err
		}
		l.Building = &info
	}
	return l, checkFormat("list of segments", m.Format)
}

func infoOf(m *storev1.Segment) (Info, error) {
	s := Info{
		ID: uint32(m.Id), Stamp: m.GetStamp(), First: uint32(m.First), Last: uint32(m.Last), Level: uint32(m.Level), Bytes: m.Bytes, Purged: m.LeftOut,
	}
	if s.First == 0 || s.Last < s.First {
		return Info{}, fmt.Errorf("%w: segment from %d to %d", ErrDamaged, s.First, s.Last)
	}
	return s, nil
}
