package agents

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of a stored state.
const (
	fieldStatePersistent = iota + 1
	fieldStateEphemeral
	fieldStateUpdated
	fieldStateMetadata
)

// Fields of a pair of texts.
const (
	fieldPairKey = iota + 1
	fieldPairValue
)

// Fields of a stored gap.
const (
	fieldGapMarked = iota + 1
	fieldGapEnded
	fieldGapTopic
	fieldGapRecent
	fieldGapSince
	fieldGapHolder
	fieldGapClaim
)

// Fields of one topic of a gap.
const (
	fieldGapTopicName = iota + 1
	fieldGapTopicSequence
)

func encodeState(s State) []byte {
	dst := wire.AppendText(nil, fieldStatePersistent, s.Persistent)
	dst = wire.AppendText(dst, fieldStateEphemeral, s.Ephemeral)
	dst = wire.AppendInt(dst, fieldStateUpdated, s.UpdatedMillis)
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		pair := wire.AppendText(nil, fieldPairKey, key)
		pair = wire.AppendText(pair, fieldPairValue, s.Metadata[key])
		dst = wire.AppendItem(dst, fieldStateMetadata, pair)
	}
	return dst
}

func decodeState(b []byte) (s State, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return State{}, damaged(err)
		}
		switch f.Number {
		case fieldStatePersistent:
			s.Persistent = bytes.Clone(f.Bytes)
		case fieldStateEphemeral:
			s.Ephemeral = bytes.Clone(f.Bytes)
		case fieldStateUpdated:
			s.UpdatedMillis = f.Int()
		case fieldStateMetadata:
			key, value, err := decodePair(f.Bytes)
			if err != nil {
				return State{}, err
			}
			if s.Metadata == nil {
				s.Metadata = make(map[string]string)
			}
			s.Metadata[key] = value
		}
	}
	return s, nil
}

func decodePair(b []byte) (key, value string, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return "", "", damaged(err)
		}
		switch f.Number {
		case fieldPairKey:
			key = string(f.Bytes)
		case fieldPairValue:
			value = string(f.Bytes)
		}
	}
	return key, value, nil
}

// storedGap is a gap as it is stored; Ended is zero while the stream is open.
type storedGap struct {
	Gap
	marked time.Time
	claim  claim
}

// encodeGap leaves the ids out while the stream is open: they would be most of
// what is written again and again.
func encodeGap(g storedGap) []byte {
	dst := wire.AppendTime(nil, fieldGapMarked, g.marked)
	dst = wire.AppendTime(dst, fieldGapEnded, g.Ended)
	for _, topic := range slices.Sorted(maps.Keys(g.Delivered)) {
		entry := wire.AppendText(nil, fieldGapTopicName, topic)
		entry = wire.AppendUint(entry, fieldGapTopicSequence, g.Delivered[topic])
		dst = wire.AppendItem(dst, fieldGapTopic, entry)
	}
	if !g.Ended.IsZero() {
		for _, id := range g.RecentIDs {
			dst = wire.AppendItem(dst, fieldGapRecent, id)
		}
	}
	return g.claim.append(wire.AppendTime(dst, fieldGapSince, g.Since))
}

func decodeGap(b []byte) (g storedGap, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return storedGap{}, damaged(err)
		}
		switch f.Number {
		case fieldGapMarked:
			g.marked = f.Time()
		case fieldGapEnded:
			g.Ended = f.Time()
		case fieldGapTopic:
			if err := g.addTopic(f.Bytes); err != nil {
				return storedGap{}, err
			}
		case fieldGapRecent:
			g.RecentIDs = append(g.RecentIDs, string(f.Bytes))
		case fieldGapSince:
			g.Since = f.Time()
		case fieldGapHolder, fieldGapClaim:
			g.claim.read(f)
		}
	}
	return g, nil
}

func (g *storedGap) addTopic(b []byte) error {
	var topic string
	var sequence uint64
	for f, err := range wire.Fields(b) {
		if err != nil {
			return damaged(err)
		}
		switch f.Number {
		case fieldGapTopicName:
			topic = string(f.Bytes)
		case fieldGapTopicSequence:
			sequence = f.Value
		}
	}
	if g.Delivered == nil {
		g.Delivered = make(map[string]uint64)
	}
	g.Delivered[topic] = sequence
	return nil
}

// empty reports whether a stream has claimed the gap and has not been marked yet.
func (g *storedGap) empty() bool {
	return !g.claim.isZero() && g.Ended.IsZero() && g.Since.IsZero() && len(g.Delivered) == 0
}

// gap is the gap as its taker sees it: a stream that left it open ended with its
// last mark.
func (g storedGap) gap() Gap {
	if g.Ended.IsZero() {
		g.Ended = g.marked
	}
	return g.Gap
}
