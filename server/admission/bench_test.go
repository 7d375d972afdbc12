package admission_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// BenchmarkCheck is what counting costs beside decoding, for a small request and
// for a large one.
func BenchmarkCheck(b *testing.B) {
	small := &loombridgev1.MemorySaveRequest{
		AgentId: "researcher-1", Text: "Bitcoin closed at 45,000", SessionId: "s1", Tags: []string{"market", "desk"},
		MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"source": structpb.NewStringValue("desk"), "page": structpb.NewNumberValue(3),
		}}},
	}
	large := &loombridgev1.BatchSaveRequest{AgentId: "researcher-1"}
	for range 500 {
		large.Records = append(large.Records, &loombridgev1.MemorySaveRequest{
			Text: strings.Repeat("word ", 100), Tags: []string{"a", "b", "c"}, Embedding: make([]float32, 384),
		})
	}
	for name, m := range map[string]proto.Message{"small": small, "large": large} {
		raw := encode(b, m)
		d := m.ProtoReflect().Descriptor()
		counter := wide(m)
		b.Run(name+"/count", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, found := counter.Check(d, raw); found {
					b.Fatal("too large")
				}
			}
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			into := m.ProtoReflect().New().Interface()
			for b.Loop() {
				if err := proto.Unmarshal(raw, into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
