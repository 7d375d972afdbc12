package messages

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// The tags of a target's entries, in the scope of the agent (memory/FORMAT.md).
const (
	tagMessage = 'm' // a message, by rank
	tagTask    = 't' // a task id: where its message stands
	tagCounts  = 'n' // how many there are
	tagExpiry  = 'x' // when a message expires: time, rank, task id
)

// rankBytes is the length of what a message is sorted by before its task id.
const rankBytes = 16

// rank sorts messages: the highest priority first, then the newest.
func (m *Message) rank() []byte {
	rank := binary.BigEndian.AppendUint64(make([]byte, 0, rankBytes), ^math.Float64bits(m.Priority+0)) // +0: no negative zero
	return binary.BigEndian.AppendUint64(rank, ^(uint64(m.Time.UnixMicro()) ^ 1<<63))
}

// MaxPlaceBytes bounds a Place.
const MaxPlaceBytes = rankBytes + MaxTaskIDBytes

// Place is the sort key of a message in its target's list. Keys are unique.
func (m Message) Place() string { return string(m.rank()) + m.TaskID }

func (m *Message) encode() []byte {
	return wire.Marshal(&storev1.DirectMessage{
		Id: m.TaskID, Sender: m.Source, Target: m.Target, Node: m.Node, Content: m.Content, Role: string(m.Role),
		Priority: &m.Priority, Ttl: m.TTL.Microseconds(), Parent: m.ParentTaskID, Metadata: m.Metadata,
		Session: m.SessionID, Time: wire.Micros(m.Time),
	})
}

func decode(b []byte) (Message, error) {
	var m storev1.DirectMessage
	if err := wire.Unmarshal(b, &m); err != nil {
		return Message{}, damaged("message", err)
	}
	return Message{
		TaskID: m.Id, Source: m.Sender, Target: m.Target, Node: m.Node, Content: m.Content, Role: Role(m.Role),
		Priority: m.GetPriority(), TTL: time.Duration(m.Ttl) * time.Microsecond, ParentTaskID: m.Parent, Metadata: m.Metadata,
		SessionID: m.Session, Time: wire.TimeOf(m.Time),
	}, nil
}

// counts are how many messages of each sender a box has.
type counts map[string]int

func (c counts) total() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

func (c counts) encode(senders []string) []byte {
	m := &storev1.MessageCounts{}
	for _, sender := range senders {
		m.Senders = append(m.Senders, &storev1.SenderCount{Sender: sender, Number: uint64(c[sender])})
	}
	return wire.Marshal(m)
}

func decodeCounts(b []byte) (counts, error) {
	var m storev1.MessageCounts
	if err := wire.Unmarshal(b, &m); err != nil {
		return nil, damaged("counts", err)
	}
	c := make(counts)
	for _, of := range m.Senders {
		c[of.Sender] = int(min(of.Number, math.MaxInt32)) //nolint:gosec // it is bounded
	}
	return c, nil
}

func damaged(what string, err error) error {
	return fmt.Errorf("%w: messages: %s: %w", kv.ErrDamaged, what, err)
}
