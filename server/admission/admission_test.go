package admission_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/admission"
)

// Limits of the tests: as low as the counting can be seen.
const (
	few  = 3
	json = 10
)

func requests() []proto.Message {
	return []proto.Message{
		&loombridgev1.MemorySaveRequest{}, &loombridgev1.BatchSaveRequest{}, &loombridgev1.AttachRequest{}, &loombridgev1.EmitRequest{},
		&loombridgev1.ListToolsRequest{}, &loombridgev1.AppendMessagesRequest{}, &loombridgev1.UpdateRecordRequest{},
	}
}

// newCounter allows few items in every field, and json values.
func newCounter() *admission.Counter {
	var types []protoreflect.MessageDescriptor
	for _, m := range requests() {
		types = append(types, m.ProtoReflect().Descriptor())
	}
	table := admission.ItemLimits{}
	for _, field := range admission.Counted(types...) {
		table[field.FullName()] = few
		if admission.IsJSON(field) {
			table[field.FullName()] = json
		}
	}
	return admission.NewCounter(table, types...)
}

func encode(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func object(tb testing.TB, members map[string]any) *structpb.Struct {
	tb.Helper()
	s, err := structpb.NewStruct(members)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// nested is a list within a list, so many times.
func nested(depth int) *structpb.Value {
	v := structpb.NewNullValue()
	for range depth {
		v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
	}
	return v
}

// The first excess is found, and named with its place.
func TestCheck(t *testing.T) {
	four := []string{"a", "b", "c", "d"}
	ten := map[string]any{"a": 1, "b": []any{1, 2, 3}, "c": map[string]any{"d": nil, "e": "f", "g": true}, "h": ""}
	eleven := map[string]any{"a": ten["a"], "b": ten["b"], "c": ten["c"], "h": map[string]any{"i": 1}}
	payload := func(v *structpb.Value) *loombridgev1.EmitRequest {
		return &loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_Payload{Payload: v}}
	}
	for name, tt := range map[string]struct {
		message proto.Message
		field   string
		problem string
	}{
		"nothing":        {&loombridgev1.MemorySaveRequest{}, "", ""},
		"three tags":     {&loombridgev1.MemorySaveRequest{Tags: four[:3]}, "", ""},
		"four tags":      {&loombridgev1.MemorySaveRequest{Tags: four}, "tags", "has more than 3 items"},
		"packed numbers": {&loombridgev1.MemorySaveRequest{Embedding: make([]float32, 4)}, "embedding", "has more than 3 items"},
		"few numbers":    {&loombridgev1.MemorySaveRequest{Embedding: make([]float32, 3)}, "", ""},
		"packed varints": {&loombridgev1.ListToolsRequest{Levels: []int32{1, 1000, 100000, 2}}, "levels", "has more than 3 items"},
		"three varints":  {&loombridgev1.ListToolsRequest{Levels: []int32{1, 1000, 100000}}, "", ""},
		"a map":          {&loombridgev1.EmitRequest{Headers: map[string]string{"a": "", "b": "", "c": "", "d": ""}}, "headers", "has more than 3 items"},
		"inside an item": {
			&loombridgev1.BatchSaveRequest{Records: []*loombridgev1.MemorySaveRequest{{Tags: four[:3]}, {DerivedFrom: four}}},
			"records[1].derived_from", "has more than 3 items",
		},
		"inside messages": {
			&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Publish{Publish: &loombridgev1.EmitRequest{Tags: four}}},
			"publish.tags", "has more than 3 items",
		},
		"ten values": {&loombridgev1.MemorySaveRequest{
			MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: object(t, ten)},
		}, "", ""},
		"eleven values": {&loombridgev1.MemorySaveRequest{
			MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: object(t, eleven)},
		}, "metadata", "has more than 10 JSON values; give it as JSON text"},
		"nested":      {payload(nested(json)), "", ""},
		"a long text": {payload(structpb.NewStringValue(strings.Repeat("x", 1<<20))), "", ""},
		"each value by itself": {&loombridgev1.BatchSaveRequest{Records: []*loombridgev1.MemorySaveRequest{
			{MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: object(t, ten)}}, {MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: object(t, ten)}},
		}}, "", ""},
		"the second value": {&loombridgev1.BatchSaveRequest{Records: []*loombridgev1.MemorySaveRequest{
			{MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: object(t, ten)}}, {MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: object(t, eleven)}},
		}}, "records[1].metadata", "has more than 10 JSON values; give it as JSON text"},
	} {
		excess, found := newCounter().Check(tt.message.ProtoReflect().Descriptor(), encode(t, tt.message))
		if found != (tt.problem != "") || excess.Field != tt.field || excess.Problem != tt.problem {
			t.Errorf("%s: got %+v, %v", name, excess, found)
		}
	}
}

// wide allows anything but what all messages are bounded by.
func wide(m proto.Message) *admission.Counter {
	return admission.NewCounter(admission.ItemLimits{}, m.ProtoReflect().Descriptor())
}

// What is bounded for the message as a whole, and the depth of JSON.
func TestCheckTheWhole(t *testing.T) {
	records := func(n int) *loombridgev1.BatchSaveRequest {
		m := &loombridgev1.BatchSaveRequest{}
		for range n {
			m.Records = append(m.Records, &loombridgev1.MemorySaveRequest{Tags: make([]string, 127)})
		}
		return m
	}
	deep := func(n int) *loombridgev1.EmitRequest {
		return &loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_Payload{Payload: nested(n)}}
	}
	all := fmt.Sprintf("holds more than %d items and JSON values in all", admission.MaxItems)
	for name, tt := range map[string]struct {
		message        proto.Message
		field, problem string
	}{
		"as many as there may be": {records(admission.MaxItems / 128), "", ""},
		"one record more":         {records(admission.MaxItems/128 + 1), "", all},
		"deep":                    {deep(admission.MaxDepth), "", ""},
		"too deep":                {deep(admission.MaxDepth + 1), "payload", fmt.Sprintf("is nested deeper than %d levels", admission.MaxDepth)},
	} {
		excess, found := wide(tt.message).Check(tt.message.ProtoReflect().Descriptor(), encode(t, tt.message))
		if found != (tt.problem != "") || excess.Field != tt.field || excess.Problem != tt.problem {
			t.Errorf("%s: got %+v, %v", name, excess, found)
		}
	}
}

// A message that comes in many pieces for one field is merged by the decoder, at
// a cost for each piece.
func TestCheckCountsPieces(t *testing.T) {
	piece := encode(t, &loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Heartbeat{Heartbeat: &loombridgev1.AttachHeartbeat{}}})
	m := &loombridgev1.AttachRequest{}
	raw := []byte(strings.Repeat(string(piece), admission.MaxItems+100))
	if _, found := wide(m).Check(m.ProtoReflect().Descriptor(), raw); !found {
		t.Errorf("%d pieces are taken", len(raw)/len(piece))
	}
}

// countedOf counts what a decoded message holds, the slow and plain way: the most
// items of one field, and the most values of one JSON value.
func countedOf(m protoreflect.Message) (items, values int) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if admission.IsJSON(field) {
			values = max(values, valuesOf(v.Message().Interface()))
			return true
		}
		switch {
		case field.IsMap():
			items = max(items, v.Map().Len())
		case field.IsList():
			items = max(items, v.List().Len())
			for i := range v.List().Len() {
				if field.Message() != nil {
					inner, within := countedOf(v.List().Get(i).Message())
					items, values = max(items, inner), max(values, within)
				}
			}
		case field.Message() != nil:
			inner, within := countedOf(v.Message())
			items, values = max(items, inner), max(values, within)
		}
		return true
	})
	return items, values
}

func valuesOf(m proto.Message) int {
	n := 0
	switch m := m.(type) {
	case *structpb.Struct:
		for _, v := range m.GetFields() {
			n += 1 + valuesOf(v)
		}
	case *structpb.ListValue:
		for _, v := range m.GetValues() {
			n += 1 + valuesOf(v)
		}
	case *structpb.Value:
		switch kind := m.GetKind().(type) {
		case *structpb.Value_StructValue:
			return valuesOf(kind.StructValue)
		case *structpb.Value_ListValue:
			return valuesOf(kind.ListValue)
		}
	}
	return n
}

// randomMessage fills fields at random, few or many items each.
func randomMessage(random *rand.Rand, m protoreflect.Message, depth int) {
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		switch {
		case random.IntN(2) == 0 || depth == 0 && field.Message() != nil:
		case field.IsMap():
			entries := m.Mutable(field).Map()
			for n := range random.IntN(few + 2) {
				value := entries.NewValue()
				if field.MapValue().Message() != nil {
					randomMessage(random, value.Message(), depth-1)
				}
				entries.Set(protoreflect.ValueOfString(fmt.Sprint(n)).MapKey(), value)
			}
		case field.IsList():
			list := m.Mutable(field).List()
			for range random.IntN(few + 2) {
				value := list.NewElement()
				if field.Message() != nil {
					randomMessage(random, value.Message(), depth-1)
				}
				list.Append(value)
			}
		case field.Message() != nil:
			randomMessage(random, m.Mutable(field).Message(), depth-1)
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(strings.Repeat("x", random.IntN(300))))
		}
	}
}

// Counting on the wire finds an excess exactly where the decoded message has one.
func TestCheckAgreesWithTheDecodedMessage(t *testing.T) {
	counter := newCounter()
	random := rand.New(rand.NewPCG(3, 1))
	found := 0
	for range 3000 {
		m := requests()[random.IntN(len(requests()))]
		randomMessage(random, m.ProtoReflect(), 7)
		items, values := countedOf(m.ProtoReflect())
		excess, got := counter.Check(m.ProtoReflect().Descriptor(), encode(t, m))
		if want := items > few || values > json; got != want {
			t.Fatalf("%d items, %d values: %+v, %v of %v", items, values, excess, got, m)
		}
		if got {
			found++
		}
	}
	if found < 300 || found > 2700 {
		t.Errorf("%d of 3000 messages are too large: the test shows little", found)
	}
}

// Whatever comes, the walk ends; and what it lets through has no excess when it
// can be decoded.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{0x62, 0x01, 'a', 0x62, 0x00, 0x62, 0x00, 0x62, 0x00}, 0)
	f.Add(encode(f, &loombridgev1.BatchSaveRequest{Records: []*loombridgev1.MemorySaveRequest{{Tags: []string{"a"}}}}), 1)
	f.Add(encode(f, &loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_Payload{Payload: nested(4)}}), 3)
	f.Add([]byte{0x0b, 0x0b, 0xff}, 2)
	counter := newCounter()
	f.Fuzz(func(t *testing.T, raw []byte, which int) {
		all := requests()
		m := all[((which%len(all))+len(all))%len(all)]
		_, found := counter.Check(m.ProtoReflect().Descriptor(), raw)
		if found || proto.Unmarshal(raw, m) != nil {
			return
		}
		if items, values := countedOf(m.ProtoReflect()); items > few || values > json {
			t.Errorf("%d items and %d values are taken: %v", items, values, m)
		}
	})
}
