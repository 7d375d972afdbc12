package validate

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func providedTool(name string) *loombridgev1.ToolDescriptor {
	return &loombridgev1.ToolDescriptor{Name: name}
}

func TestAttachHello(t *testing.T) {
	type r = *loombridgev1.AttachHello
	good := &loombridgev1.AttachHello{
		AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "t"}, {Topic: "t.*"}}, Tools: []*loombridgev1.ToolDescriptor{providedTool("a:b_c.d-e/F9")},
	}
	runChecks(t, good, check[r], []checkCase[r]{
		{"all at once", func(m r) { *m = loombridgev1.AttachHello{} }, []string{"agent_id"}},
		{"no topics and tools", func(m r) { m.Topics, m.Tools = nil, nil }, nil},
		{"agent with NUL", func(m r) { m.AgentId = "a\x00" }, []string{"agent_id"}},
		{"session over its limit", func(m r) { m.SessionId = long(257) }, []string{"session_id"}},
		{"a topic twice", func(m r) { m.Topics = append(m.Topics, m.GetTopics()[0]) }, []string{"topics[2].topic"}},
		{"65 topics", func(m r) {
			m.Topics = nil
			for i := range 65 {
				m.Topics = append(m.Topics, &loombridgev1.TopicPosition{Topic: long(i + 1)})
			}
		}, []string{"topics"}},
		{"tool without name", func(m r) { m.Tools[0].Name = "" }, []string{"tools[0].name"}},
		{"tool with a space", func(m r) { m.Tools[0].Name = "a b" }, []string{"tools[0].name"}},
		{"tool with an umlaut", func(m r) { m.Tools[0].Name = "ä" }, []string{"tools[0].name"}},
		{"tool name at its limit", func(m r) { m.Tools[0].Name = long(128) }, nil},
		{"tool name over its limit", func(m r) { m.Tools[0].Name = long(129) }, []string{"tools[0].name"}},
		{"a tool twice", func(m r) { m.Tools = append(m.Tools, m.GetTools()[0]) }, []string{"tools[1].name"}},
		{"description over its limit", func(m r) { m.Tools[0].Description = long(16<<10 + 1) }, []string{"tools[0].description"}},
		{"schema over its limit", func(m r) {
			m.Tools[0].ParametersSchemaJson = long(64<<10 + 1)
		}, []string{"tools[0].parameters_schema_json"}},
		{"level at its limits", func(m r) {
			m.Tools = append(m.Tools, &loombridgev1.ToolDescriptor{Name: "x", Level: 1})
			m.Tools[0].Level = 3
		}, nil},
		{"level over its limit", func(m r) { m.Tools[0].Level = 4 }, []string{"tools[0].level"}},
		{"level below 0", func(m r) { m.Tools[0].Level = -1 }, []string{"tools[0].level"}},
		{"257 tools", func(m r) {
			m.Tools = nil
			for i := range 257 {
				m.Tools = append(m.Tools, providedTool("t"+long(i%127)+string(rune('a'+i/127))))
			}
		}, []string{"tools"}},
		{"33 pairs of metadata", func(m r) {
			m.Metadata = map[string]string{}
			for i := range 33 {
				m.Metadata[long(i+1)] = ""
			}
		}, []string{"metadata"}},
		{"metadata at its limit", func(m r) { m.Metadata = map[string]string{"k": long(8<<10 - 1)} }, nil},
		{"metadata over its limit", func(m r) { m.Metadata = map[string]string{"k": long(8 << 10)} }, []string{"metadata"}},
		{"65 capabilities", func(m r) { m.Capabilities = strings.Split(long(65), "") }, []string{"capabilities"}},
		{"capability over its limit", func(m r) { m.Capabilities = []string{"", long(257)} }, []string{"capabilities[1]"}},
		{"parent over its limit", func(m r) { m.ParentId = long(257) }, []string{"parent_id"}},
		{"heartbeat of 100 ms", func(m r) { m.HeartbeatInterval = durationpb.New(100 * time.Millisecond) }, nil},
		{"heartbeat too often", func(m r) { m.HeartbeatInterval = durationpb.New(100*time.Millisecond - 1) }, []string{"heartbeat_interval"}},
		{"heartbeat too seldom", func(m r) { m.HeartbeatInterval = durationpb.New(time.Hour + 1) }, []string{"heartbeat_interval"}},
	})
}

func TestTopics(t *testing.T) {
	type r = *loombridgev1.SubscribeRequest
	good := &loombridgev1.SubscribeRequest{Topics: []*loombridgev1.TopicPosition{{Topic: "t"}}}
	check := func(m r) error {
		if err := counted(m); err != nil {
			return err
		}
		return AttachSubscribe(m, "a", map[string]struct{}{"here": {}})
	}
	runChecks(t, good, check, []checkCase[r]{
		{"no topics", func(m r) { m.Topics = nil }, []string{"topics"}},
		{"its own agent", func(m r) { m.AgentId = "a" }, nil},
		{"other agent", func(m r) { m.AgentId = "b" }, []string{"agent_id"}},
		{"subscribed already", func(m r) { m.Topics[0].Topic = "here" }, []string{"topics[0].topic"}},
		{"empty topic", func(m r) { m.Topics[0].Topic = "" }, []string{"topics[0].topic"}},
		{"topic over its limit", func(m r) { m.Topics[0].Topic = long(257) }, []string{"topics[0].topic"}},
		{"empty word", func(m r) { m.Topics[0].Topic = "a..b" }, []string{"topics[0].topic"}},
		{"rest in the middle", func(m r) { m.Topics[0].Topic = "a.**.b" }, []string{"topics[0].topic"}},
		{"before the beginning", func(m r) { m.Topics[0].AfterSequence = new(int64(-1)) }, []string{"topics[0].after_sequence"}},
		{"pattern with a position", func(m r) { m.Topics[0] = &loombridgev1.TopicPosition{Topic: "**", AfterSequence: new(int64(1))} }, []string{"topics[0].topic"}},
		{"pattern with a time", func(m r) { m.Topics[0] = &loombridgev1.TopicPosition{Topic: "*.b", Since: timestamppb.Now()} }, nil},
		{"two beginnings", func(m r) { m.Topics[0].AfterSequence, m.Topics[0].Since = new(int64(1)), timestamppb.Now() }, []string{"topics[0].since"}},
		{"no such time", func(m r) { m.Topics[0].Since = &timestamppb.Timestamp{Seconds: math.MaxInt64} }, []string{"topics[0].since"}},
		{"unknown quality", func(m r) { m.Topics[0].QualityOfService = 4 }, []string{"topics[0].quality_of_service"}},
		{"65 types", func(m r) { m.Topics[0].EventTypes = strings.Split(long(65), "") }, []string{"topics[0].event_types"}},
		{"type over its limit", func(m r) { m.Topics[0].EventTypes = []string{long(257)} }, []string{"topics[0].event_types[0]"}},
		{"33 headers", func(m r) {
			m.Topics[0].Headers = map[string]string{}
			for i := range 33 {
				m.Topics[0].Headers[long(i+1)] = ""
			}
		}, []string{"topics[0].headers"}},
	})
}

func TestPublished(t *testing.T) {
	type r = *loombridgev1.EmitRequest
	good := &loombridgev1.EmitRequest{AgentId: "a", Topic: "t", Type: "x", Tags: []string{"y", ""}}
	check := func(m r) error {
		if err := counted(m); err != nil {
			return err
		}
		return Published(m, "a")
	}
	runChecks(t, good, check, []checkCase[r]{
		{"other agent", func(m r) { m.AgentId = "b" }, []string{"agent_id"}},
		{"type at its limit", func(m r) { m.Type = long(256) }, nil},
		{"type over its limit", func(m r) { m.Type = long(257) }, []string{"type"}},
		{"33 tags", func(m r) { m.Tags = strings.Split(long(33), "") }, []string{"tags"}},
		{"tag over its limit", func(m r) { m.Tags[1] = long(257) }, []string{"tags[1]"}},
		{"headers over their limit", func(m r) { m.Headers = map[string]string{"k": long(8 << 10)} }, []string{"headers"}},
	})
}
