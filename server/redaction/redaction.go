// Package redaction takes secrets out of requests whose texts are stored.
//
// Which fields those are is one table. Records, and calls of tools with their results, are
// not in it: tools need their arguments as they came, so the domain redacts what it stores
// of them.
package redaction

import (
	"bytes"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// stored are the fields of requests, by the name of their message, that have texts which are
// stored, or which become events.
var stored = map[protoreflect.FullName][]protoreflect.Name{
	"loombridge.v1.AppendMessagesRequest":   {"messages"},
	"loombridge.v1.EmitRequest":             {"payload", "payload_json", "payload_bytes", "headers", "type", "tags"},
	"loombridge.v1.AttachRequest":           {"publish"},
	"loombridge.v1.SendMessageRequest":      {"message"},
	"loombridge.v1.UpdateWorkingRequest":    {"goal", "plan", "goal_progress", "scratchpad", "signals", "acknowledge", "add_questions", "remove_questions", "add_evidence"},
	"loombridge.v1.ConfigureSessionRequest": {"history", "prompt"},
	"loombridge.v1.AssembleRequest":         {"goal", "system", "history", "settings", "tools"},
	"loombridge.v1.SpawnAgentRequest":       {"goal"},
	"loombridge.v1.CompleteTaskRequest":     {"conclusion", "error"},
	"loombridge.v1.CompressResultRequest":   {"content", "path"},
	"loombridge.v1.CompactHistoryRequest":   {"summary"},
	"loombridge.v1.RenewRequest":            {"goal"},
	"loombridge.v1.UpdateBlobRequest":       {"tags"},
	"lf.a2a.v1.SendMessageRequest":          {"message"},
	"loom.v1.PublishRequest":                {"event"},
	"loom.v1.ClientEvent":                   {"publish"},
	"loom.v1.SendEventRequest":              {"event"},
	"loom.v1.AgentState":                    {"persistent_state", "ephemeral_context", "metadata"},
	"loom.v1.SavePlanRequest":               {"plan"},
	"loom.v1.CheckDuplicateRequest":         {"plan"},
	"loom.v1.MarkExecutedRequest":           {"execution"},
	"loom.v1.MemoryWriteRequest":            {"event"},
}

// Request redacts a request in place. A nil Redactor, and a request that is not in the
// table, are left alone.
func Request(by *redact.Redactor, request any) {
	m, ok := request.(proto.Message)
	if by == nil || !ok {
		return
	}
	r := m.ProtoReflect()
	for _, name := range stored[r.Descriptor().FullName()] {
		if f := r.Descriptor().Fields().ByName(name); f != nil && r.Has(f) {
			field(by, r, f)
		}
	}
}

// named are fields by which something is found again: ids, roles and the like.
func named(f protoreflect.FieldDescriptor) bool {
	switch name := string(f.Name()); name {
	case "id", "name", "key", "topic", "role", "source", "symbol", "plan_hash":
		return true
	default:
		return strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids")
	}
}

func message(by *redact.Redactor, m protoreflect.Message) {
	switch v := m.Interface().(type) {
	case *structpb.Struct:
		v.Fields = structOf(by, v.AsMap(), v.Fields)
		return
	case *structpb.Value:
		redactValue(by, v)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !named(f) {
			field(by, m, f)
		}
		return true
	})
}

func field(by *redact.Redactor, m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap():
		entries := m.Mutable(f).Map()
		entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			switch f.MapValue().Kind() {
			case protoreflect.StringKind:
				if safe := by.Named(k.String(), v.String(), new(redact.Counts)); safe != v.String() {
					entries.Set(k, protoreflect.ValueOfString(safe))
				}
			case protoreflect.MessageKind:
				message(by, v.Message())
			}
			return true
		})
	case f.IsList():
		list := m.Mutable(f).List()
		for i := range list.Len() {
			if f.Kind() == protoreflect.MessageKind {
				message(by, list.Get(i).Message())
			} else if safe, changed := scalar(by, f, list.Get(i)); changed {
				list.Set(i, safe)
			}
		}
	case f.Kind() == protoreflect.MessageKind:
		message(by, m.Mutable(f).Message())
	default:
		if safe, changed := scalar(by, f, m.Get(f)); changed {
			m.Set(f, safe)
		}
	}
}

func scalar(by *redact.Redactor, f protoreflect.FieldDescriptor, v protoreflect.Value) (protoreflect.Value, bool) {
	switch f.Kind() {
	case protoreflect.StringKind:
		safe := by.Text(v.String(), new(redact.Counts))
		return protoreflect.ValueOfString(safe), safe != v.String()
	case protoreflect.BytesKind:
		// Nothing fails here: the bytes are in memory.
		safe, err := io.ReadAll(by.Reader(bytes.NewReader(v.Bytes()), new(redact.Counts)))
		return protoreflect.ValueOfBytes(safe), err == nil && !bytes.Equal(safe, v.Bytes())
	}
	return v, false
}

// redactValue redacts a value of decoded JSON in place.
func redactValue(by *redact.Redactor, v *structpb.Value) {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		kind.StringValue = by.Text(kind.StringValue, new(redact.Counts))
	case *structpb.Value_StructValue:
		message(by, kind.StructValue.ProtoReflect())
	case *structpb.Value_ListValue:
		for _, one := range kind.ListValue.GetValues() {
			redactValue(by, one)
		}
	}
}

// structOf returns the fields of a Struct without secrets: the same fields if none is
// found.
func structOf(by *redact.Redactor, values map[string]any, fields map[string]*structpb.Value) map[string]*structpb.Value {
	var found redact.Counts
	safe := by.Object(values, &found)
	if len(found) == 0 {
		return fields
	}
	out, err := structpb.NewStruct(safe)
	if err != nil { // which it can't be: the values come from one
		return nil
	}
	return out.GetFields()
}
