package lexical

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// segmentInfo is what the list says of a segment.
type segmentInfo struct {
	id uint32
	// stamp is a random number that no other segment has, so that what a
	// process remembers of a segment can't be mistaken for another's.
	stamp       uint64
	first, last uint32 // ordinals
	level       uint32 // how often its documents were merged
	bytes       uint64 // of its chunks
	// purged is how many of its documents were dead when it was written, and
	// so have nothing in it.
	purged uint64
}

func (s segmentInfo) documents() int { return int(s.last-s.first) + 1 }

// segmentList is the list of segments in the order of their ordinals, and what
// is under way with them.
type segmentList struct {
	next uint32 // the id of the next segment
	// segments are the ones to read.
	segments []segmentInfo
	// building is the segment that a merge is writing, in several commits.
	building *segmentInfo
	// dropped are ids of segments that nobody reads any more and whose keys
	// are still there.
	dropped []uint32
}

func (l segmentList) bytes() (sum uint64) {
	for _, s := range l.segments {
		sum += s.bytes
	}
	return sum
}

// covers tells whether the segments hold the documents 1 to last without a gap.
func (l segmentList) covers(last uint32) bool {
	end := uint32(0)
	for _, s := range l.segments {
		if s.first != end+1 {
			return false
		}
		end = s.last
	}
	return end == last
}

// take gives out the next id.
func (l *segmentList) take() uint32 {
	l.next++
	return l.next
}

// abandon gives up the segment that a merge never finished.
func (l *segmentList) abandon() {
	if l.building != nil {
		l.dropped = append(l.dropped, l.building.id)
		l.building = nil
	}
}

// replace puts a segment in the place of those that it was merged from, and
// tells whether all of them were there.
func (l *segmentList) replace(inputs []segmentInfo, merged segmentInfo) bool {
	at := slices.IndexFunc(l.segments, func(s segmentInfo) bool { return s.stamp == inputs[0].stamp })
	if at < 0 || at+len(inputs) > len(l.segments) {
		return false
	}
	for i, in := range inputs {
		if l.segments[at+i] != in {
			return false
		}
		l.dropped = append(l.dropped, in.id)
	}
	l.segments = slices.Replace(l.segments, at, at+len(inputs), merged)
	return true
}

// The fields of the list and of a segment in it.
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

func (l segmentList) encode() []byte {
	b := wire.AppendUint(nil, listFormat, layout)
	b = wire.AppendUint(b, listNext, uint64(l.next))
	for _, s := range l.segments {
		b = wire.AppendItem(b, listSegment, s.encode())
	}
	if l.building != nil {
		b = wire.AppendItem(b, listBuilding, l.building.encode())
	}
	for _, id := range l.dropped {
		b = wire.AppendUint(b, listDropped, uint64(id))
	}
	return b
}

func (s segmentInfo) encode() []byte {
	b := wire.AppendUint(nil, segmentID, uint64(s.id))
	b = wire.AppendFixed64(b, segmentStamp, s.stamp)
	b = wire.AppendUint(b, segmentFirst, uint64(s.first))
	b = wire.AppendUint(b, segmentLast, uint64(s.last))
	b = wire.AppendUint(b, segmentLevel, uint64(s.level))
	b = wire.AppendUint(b, segmentBytes, s.bytes)
	return wire.AppendUint(b, segmentPurged, s.purged)
}

func decodeSegmentList(b []byte) (segmentList, error) {
	var l segmentList
	if b == nil {
		return l, nil
	}
	format := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return segmentList{}, fmt.Errorf("%w: list of segments: %w", ErrDamaged, err)
		}
		switch f.Number {
		case listFormat:
			format = f.Value
		case listNext:
			l.next = uint32(f.Value)
		case listDropped:
			l.dropped = append(l.dropped, uint32(f.Value))
		case listSegment, listBuilding:
			s, err := decodeSegmentInfo(f.Bytes)
			if err != nil {
				return segmentList{}, err
			}
			if f.Number == listBuilding {
				l.building = &s
			} else {
				l.segments = append(l.segments, s)
			}
		}
	}
	return l, checkFormat("list of segments", format)
}

func decodeSegmentInfo(b []byte) (segmentInfo, error) {
	var s segmentInfo
	for f, err := range wire.Fields(b) {
		if err != nil {
			return segmentInfo{}, fmt.Errorf("%w: segment: %w", ErrDamaged, err)
		}
		switch f.Number {
		case segmentID:
			s.id = uint32(f.Value)
		case segmentStamp:
			s.stamp = f.Value
		case segmentFirst:
			s.first = uint32(f.Value)
		case segmentLast:
			s.last = uint32(f.Value)
		case segmentLevel:
			s.level = uint32(f.Value)
		case segmentBytes:
			s.bytes = f.Value
		case segmentPurged:
			s.purged = f.Value
		}
	}
	if s.first == 0 || s.last < s.first {
		return segmentInfo{}, fmt.Errorf("%w: segment from %d to %d", ErrDamaged, s.first, s.last)
	}
	return s, nil
}
