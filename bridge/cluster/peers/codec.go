package peers

import (
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// topicName is a topic or an agent of a tenant.
type topicName struct{ Tenant, Name string }

// result says that a child has its result.
type result struct{ Tenant, Child, Parent string }

// page is a part of what a peer announces: a change, or the answer to who asks for all.
type page struct {
	Number uint64 // of the announcement, or of the last one before the answer
	Items  []agents.Announced
	More   bool
}

// call is a tool call for an agent of the peer.
type call struct {
	At   topicName
	Call agents.ToolCall
}

// callAnswer is that of a call, or of an event for one stream.
type callAnswer struct {
	Result agents.ToolResult
	Failed failureKind // zero: it did not
	Text   string      // of the failure
}

// handed is the gap of an agent, if the peer has it.
type handed struct {
	Found bool
	Gap   agents.Gap
}

// Fields of an event. It is written by hand since volatile events come by the thousand.
const (
	fieldTenant = iota + 1
	fieldName   // of an agent
	fieldEvent
	fieldLegacy
)

// encodeEvent writes an event, for one agent or for all who listen.
func encodeEvent(tenant, id string, e *events.Event, legacy bool) []byte {
	b := wire.AppendText(wire.AppendText(nil, fieldTenant, tenant), fieldName, id)
	if legacy {
		b = wire.AppendNumber(b, fieldLegacy, 1)
	}
	return wire.AppendItem(b, fieldEvent, store.Encode(*e))
}

func decodeEvent(b []byte) (at topicName, e events.Event, legacy bool, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return topicName{}, events.Event{}, false, err
		}
		switch f.Number {
		case fieldTenant:
			at.Tenant = string(f.Bytes)
		case fieldName:
			at.Name = string(f.Bytes)
		case fieldLegacy:
			legacy = f.Value != 0
		case fieldEvent:
			if e, err = store.Decode(f.Bytes); err != nil {
				return topicName{}, events.Event{}, false, err
			}
		}
	}
	return at, e, legacy, nil
}
