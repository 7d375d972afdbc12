package messages

import (
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// tagAnswer is the tag under which the writer keeps that a task id was sent.
const tagAnswer = 'q'

// Erasing takes the messages of a sender out of the boxes of others, while their entries
// are copied in the order of their keys.
type Erasing struct {
	// Source is whose messages go. Required.
	Source string
	// Session narrows them to those of one session. Default: all go.
	Session string

	scope kv.Scope
	tasks map[string]bool // of the messages that went
}

// Change says what becomes of an entry of an agent's scope in the keyspace of the system:
// its value, and whether it stays.
func (x *Erasing) Change(scope kv.Scope, p kv.Pair) (value []byte, keep bool, err error) {
	if scope != x.scope || x.tasks == nil {
		x.scope, x.tasks = scope, make(map[string]bool)
	}
	_, rest, err := kv.SplitKey(p.Key)
	if err != nil || len(rest) == 0 {
		return p.Value, true, err
	}
	tail := string(rest[1:])
	switch rest[0] {
	case tagMessage:
		m, err := decode(p.Value)
		if err != nil || m.Source != x.Source || x.Session != "" && m.SessionID != x.Session {
			return p.Value, true, err
		}
		x.tasks[m.TaskID] = true
		return nil, false, nil
	case tagCounts:
		c, err := decodeCounts(p.Value)
		if _, sent := c[x.Source]; err != nil || !sent {
			return p.Value, true, err
		}
		if c[x.Source] -= len(x.tasks); x.Session == "" || c[x.Source] <= 0 {
			delete(c, x.Source)
		}
		return c.encode(slices.Sorted(maps.Keys(c))), len(c) > 0, nil
	case tagTask, tagAnswer:
		return p.Value, !x.tasks[tail], nil
	case tagExpiry:
		return p.Value, len(tail) < timeBytes+rankBytes || !x.tasks[tail[timeBytes+rankBytes:]], nil
	}
	return p.Value, true, nil
}
