package messages

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The tags of a target's entries, in the scope of the agent (memory/FORMAT.md).
const (
	tagMessage = 'm' // a message, by rank
	tagTask    = 't' // a task id: where its message stands
	tagCounts  = 'n' // how many there are
	tagExpiry  = 'x' // when a message expires: time, rank, task id
)

// Fields of a stored message.
const (
	fieldTask = iota + 1
	fieldSource
	fieldTarget
	fieldNode
	fieldContent
	fieldRole
	fieldPriority
	fieldTTL
	fieldParent
	fieldMetadata
	fieldSession
	fieldTime
)

// Fields of the counts, which repeat: one message for each sender.
const (
	countSource = iota + 1
	countMessages
)

const countEntry = 1

// rankBytes is the length of what a message is sorted by before its task id.
const rankBytes = 16

// rank sorts messages: the highest priority first, then the newest.
func (m *Message) rank() []byte {
	rank := binary.BigEndian.AppendUint64(make([]byte, 0, rankBytes), ^math.Float64bits(m.Priority+0)) // +0: no negative zero
	return binary.BigEndian.AppendUint64(rank, ^(uint64(m.Time.UnixMicro()) ^ 1<<63))
}

func (m *Message) encode() []byte {
	b := make([]byte, 0, 128+len(m.Content)+len(m.Metadata))
	b = wire.AppendText(b, fieldTask, m.TaskID)
	b = wire.AppendText(b, fieldSource, m.Source)
	b = wire.AppendText(b, fieldTarget, m.Target)
	b = wire.AppendText(b, fieldNode, m.Node)
	b = wire.AppendText(b, fieldContent, m.Content)
	b = wire.AppendText(b, fieldRole, m.Role)
	b = wire.AppendFixed64(b, fieldPriority, math.Float64bits(m.Priority))
	b = wire.AppendInt(b, fieldTTL, m.TTL.Microseconds())
	b = wire.AppendText(b, fieldParent, m.ParentTaskID)
	b = wire.AppendText(b, fieldMetadata, m.Metadata)
	b = wire.AppendText(b, fieldSession, m.SessionID)
	return wire.AppendTime(b, fieldTime, m.Time)
}

func decode(b []byte) (Message, error) {
	var m Message
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Message{}, damaged("message", err)
		}
		switch f.Number {
		case fieldTask:
			m.TaskID = string(f.Bytes)
		case fieldSource:
			m.Source = string(f.Bytes)
		case fieldTarget:
			m.Target = string(f.Bytes)
		case fieldNode:
			m.Node = string(f.Bytes)
		case fieldContent:
			m.Content = string(f.Bytes)
		case fieldRole:
			m.Role = Role(f.Bytes)
		case fieldPriority:
			m.Priority = math.Float64frombits(f.Value)
		case fieldTTL:
			m.TTL = time.Duration(f.Int()) * time.Microsecond
		case fieldParent:
			m.ParentTaskID = string(f.Bytes)
		case fieldMetadata:
			m.Metadata = json.RawMessage(string(f.Bytes))
		case fieldSession:
			m.SessionID = string(f.Bytes)
		case fieldTime:
			m.Time = f.Time()
		}
	}
	return m, nil
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
	var b []byte
	for _, sender := range senders {
		entry := wire.AppendUint(wire.AppendText(nil, countSource, sender), countMessages, uint64(c[sender]))
		b = wire.AppendItem(b, countEntry, entry)
	}
	return b
}

func decodeCounts(b []byte) (counts, error) {
	c := make(counts)
	for entry, err := range wire.Fields(b) {
		if err != nil {
			return nil, damaged("counts", err)
		}
		if entry.Number != countEntry {
			continue
		}
		var sender string
		var n uint64
		for f, err := range wire.Fields(entry.Bytes) {
			if err != nil {
				return nil, damaged("counts", err)
			}
			switch f.Number {
			case countSource:
				sender = string(f.Bytes)
			case countMessages:
				n = f.Value
			}
		}
		c[sender] = int(min(n, math.MaxInt32)) //nolint:gosec // it is bounded
	}
	return c, nil
}

func damaged(what string, err error) error {
	return fmt.Errorf("%w: messages: %s: %w", kv.ErrDamaged, what, err)
}
