package peers

import (
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of all messages.
const (
	fieldTenant = iota + 1
	fieldName   // of an agent or a topic
	fieldParent
	fieldNumber
	fieldItem
	fieldMore
	fieldEvent
	fieldLegacy
	fieldTool
	fieldArguments
	fieldCaller
	fieldCorrelation
	fieldPair
	fieldMillis
	fieldQoS
	fieldSession
	fieldStatus
	fieldOutput
	fieldForm
	fieldMediaType
	fieldCode
	fieldMessage
	fieldHasError
	fieldFailure
)

// Fields of a pair.
const (
	fieldKey = iota + 1
	fieldValue
)

func encodePlace(at place) []byte {
	return wire.AppendText(wire.AppendText(nil, fieldTenant, at.tenant), fieldName, at.name)
}

// decodePlace reads a place; one that can't be read is nowhere.
func decodePlace(b []byte) (at place) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return place{}
		}
		switch f.Number {
		case fieldTenant:
			at.tenant = string(f.Bytes)
		case fieldName:
			at.name = string(f.Bytes)
		}
	}
	return at
}

// encodeEvent writes an event, for one agent or for all who listen.
func encodeEvent(tenant, id string, e *events.Event, legacy bool) []byte {
	b := encodePlace(place{tenant, id})
	if legacy {
		b = wire.AppendNumber(b, fieldLegacy, 1)
	}
	return wire.AppendItem(b, fieldEvent, store.Encode(*e))
}

func decodeEvent(b []byte) (tenant, id string, e events.Event, legacy bool, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return "", "", events.Event{}, false, err
		}
		switch f.Number {
		case fieldTenant:
			tenant = string(f.Bytes)
		case fieldName:
			id = string(f.Bytes)
		case fieldLegacy:
			legacy = f.Value != 0
		case fieldEvent:
			if e, err = store.Decode(f.Bytes); err != nil {
				return "", "", events.Event{}, false, err
			}
		}
	}
	return tenant, id, e, legacy, nil
}

func appendPairs(b []byte, pairs map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		b = wire.AppendItem(b, fieldPair, wire.AppendText(wire.AppendText(nil, fieldKey, key), fieldValue, pairs[key]))
	}
	return b
}

func addPair(b []byte, to *map[string]string) error {
	var key, value string
	for f, err := range wire.Fields(b) {
		if err != nil {
			return err
		}
		switch f.Number {
		case fieldKey:
			key = string(f.Bytes)
		case fieldValue:
			value = string(f.Bytes)
		}
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[key] = value
	return nil
}

func encodeCall(at place, c *agents.ToolCall) []byte {
	b := encodePlace(at)
	b = wire.AppendText(b, fieldTool, c.Name)
	b = wire.AppendText(b, fieldArguments, c.Arguments)
	b = wire.AppendText(b, fieldCaller, c.CallerID)
	b = wire.AppendText(b, fieldCorrelation, c.CorrelationID)
	b = appendPairs(b, c.Headers)
	b = wire.AppendInt(b, fieldMillis, c.TimeoutMillis)
	b = wire.AppendInt(b, fieldQoS, int64(c.QoS))
	return wire.AppendText(b, fieldSession, c.SessionID)
}

func decodeCall(b []byte) (at place, c agents.ToolCall, err error) {
	at = decodePlace(b)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return place{}, agents.ToolCall{}, err
		}
		switch f.Number {
		case fieldTool:
			c.Name = string(f.Bytes)
		case fieldArguments:
			c.Arguments = string(f.Bytes)
		case fieldCaller:
			c.CallerID = string(f.Bytes)
		case fieldCorrelation:
			c.CorrelationID = string(f.Bytes)
		case fieldPair:
			if err := addPair(f.Bytes, &c.Headers); err != nil {
				return place{}, agents.ToolCall{}, err
			}
		case fieldMillis:
			c.TimeoutMillis = f.Int()
		case fieldQoS:
			c.QoS = int32(f.Int()) //nolint:gosec // written from an int32
		case fieldSession:
			c.SessionID = string(f.Bytes)
		}
	}
	return at, c, nil
}

func encodeResult(r *agents.ToolResult) []byte {
	b := wire.AppendInt(nil, fieldStatus, int64(r.Status))
	b = wire.AppendText(b, fieldOutput, r.Output)
	b = wire.AppendUint(b, fieldForm, uint64(r.Form))
	b = wire.AppendText(b, fieldMediaType, r.MediaType)
	b = wire.AppendText(b, fieldCode, r.ErrorCode)
	b = wire.AppendText(b, fieldMessage, r.ErrorMessage)
	b = appendPairs(b, r.Details)
	if r.HasError {
		b = wire.AppendNumber(b, fieldHasError, 1)
	}
	return b
}

func encodeFailure(f failure) []byte {
	return wire.AppendText(wire.AppendUint(nil, fieldFailure, uint64(f.kind)), fieldMessage, f.text)
}

// decodeResult reads a result, or why there is none.
func decodeResult(b []byte) (r agents.ToolResult, failed *failure, err error) {
	kind := failureKind(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return agents.ToolResult{}, nil, err
		}
		switch f.Number {
		case fieldFailure:
			kind = failureKind(min(f.Value, uint64(failedLate)+1))
		case fieldStatus:
			r.Status = int32(f.Int()) //nolint:gosec // written from an int32
		case fieldOutput:
			r.Output = string(f.Bytes)
		case fieldForm:
			r.Form = step.Form(min(f.Value, uint64(step.FormBytes)))
		case fieldMediaType:
			r.MediaType = string(f.Bytes)
		case fieldCode:
			r.ErrorCode = string(f.Bytes)
		case fieldMessage:
			r.ErrorMessage = string(f.Bytes)
		case fieldPair:
			if err := addPair(f.Bytes, &r.Details); err != nil {
				return agents.ToolResult{}, nil, err
			}
		case fieldHasError:
			r.HasError = f.Value != 0
		}
	}
	if kind != 0 {
		return agents.ToolResult{}, &failure{kind, r.ErrorMessage}, nil
	}
	return r, nil, nil
}
