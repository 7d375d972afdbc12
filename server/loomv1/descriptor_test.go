package loomv1_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// wireMessages is every message that agents out there were built with, below its
// file: "number name type", fields of a oneof with its name behind a bar.
func wireMessages() map[string]map[string][]string {
	return map[string]map[string][]string{
		"event": {
			"Event": {
				"1 id string", "2 type string", "3 timestamp_ms int64", "4 source string",
				"5 metadata map<string,string>", "6 payload bytes", "7 confidence float",
				"8 tags repeated string", "9 priority int32",
			},
			"EventStream":         {"1 events repeated Event", "2 session_id string"},
			"SubscribeRequest":    {"1 topic string", "2 event_types repeated string", "3 qos QoSLevel", "4 filters map<string,string>"},
			"SubscribeResponse":   {"1 subscription_id string", "2 success bool", "3 error_message string"},
			"PublishRequest":      {"1 topic string", "2 event Event"},
			"PublishResponse":     {"1 success bool", "2 error_message string", "3 sequence_number int64"},
			"UnsubscribeRequest":  {"1 subscription_id string"},
			"UnsubscribeResponse": {"1 success bool"},
			"StatsRequest":        {"1 topic string"},
			"StatsResponse":       {"1 total_events int64", "2 active_subscriptions int64", "3 throughput_per_sec double", "4 backlog_size int64"},
		},
		"action": {
			"ToolDescriptor": {
				"1 name string", "2 description string", "3 parameters_schema string",
				"4 provider ProviderKind", "5 metadata map<string,string>",
			},
			"ToolCall": {
				"1 id string", "2 name string", "3 arguments string", "4 headers map<string,string>",
				"5 timeout_ms int64", "6 correlation_id string", "7 qos QoSLevel",
			},
			"ToolResult":           {"1 id string", "2 status ToolStatus", "3 output string", "4 error ToolError"},
			"ToolError":            {"1 code string", "2 message string", "3 details map<string,string>"},
			"ListToolsRequest":     {},
			"ListToolsResponse":    {"1 tools repeated ToolDescriptor"},
			"CapabilityDescriptor": {"1 name string", "2 version string", "3 provider ProviderKind", "4 metadata map<string,string>"},
			"ActionCall": {
				"1 id string", "2 capability string", "3 version string", "4 payload bytes",
				"5 headers map<string,string>", "6 timeout_ms int64", "7 correlation_id string", "8 qos QoSLevel",
			},
			"ActionError":              {"1 code string", "2 message string", "3 details map<string,string>"},
			"ActionResult":             {"1 id string", "2 status ActionStatus", "3 output bytes", "4 error ActionError"},
			"ListCapabilitiesRequest":  {},
			"ListCapabilitiesResponse": {"1 capabilities repeated CapabilityDescriptor"},
		},
		"bridge": {
			"AgentRegisterRequest": {
				"1 agent_id string", "2 subscribed_topics repeated string",
				"3 tools repeated ToolDescriptor", "4 metadata map<string,string>",
			},
			"AgentRegisterResponse": {"1 success bool", "2 error_message string"},
			"ClientEvent": {
				"1 publish Publish | msg", "2 ack Ack | msg", "3 ping HeartbeatRequest | msg", "4 tool_result ToolResult | msg",
			},
			"Publish": {"1 topic string", "2 event Event"},
			"Ack":     {"1 message_id string"},
			"ServerEvent": {
				"1 delivery Delivery | msg", "2 pong HeartbeatResponse | msg", "3 err Error | msg", "4 tool_call ToolCall | msg",
			},
			"Delivery":          {"1 topic string", "2 event Event"},
			"Error":             {"1 code string", "2 message string"},
			"HeartbeatRequest":  {"1 timestamp_ms int64"},
			"HeartbeatResponse": {"1 timestamp_ms int64", "2 status string"},
		},
		"memory": {
			"PlanRecord": {
				"1 timestamp_ms int64", "2 symbol string", "3 action string", "4 confidence float",
				"5 reasoning string", "6 plan_hash string", "7 method string", "8 metadata map<string,string>",
			},
			"ExecutionRecord": {
				"1 timestamp_ms int64", "2 plan_hash string", "3 symbol string", "4 action string", "5 confidence float",
				"6 status string", "7 executed bool", "8 order_id string", "9 order_size_usdt float", "10 error_message string",
			},
			"SavePlanRequest":          {"1 session_id string", "2 plan PlanRecord"},
			"SavePlanResponse":         {"1 success bool", "2 plan_hash string", "3 error_message string"},
			"GetRecentPlansRequest":    {"1 session_id string", "2 symbol string", "3 limit int32"},
			"GetRecentPlansResponse":   {"1 plans repeated PlanRecord", "2 success bool", "3 error_message string"},
			"CheckDuplicateRequest":    {"1 session_id string", "2 plan PlanRecord", "3 time_window_sec int32"},
			"CheckDuplicateResponse":   {"1 is_duplicate bool", "2 duplicate_plan PlanRecord", "3 time_since_duplicate_ms int64"},
			"MarkExecutedRequest":      {"1 session_id string", "2 plan_hash string", "3 execution ExecutionRecord"},
			"MarkExecutedResponse":     {"1 success bool", "2 error_message string"},
			"CheckExecutedRequest":     {"1 session_id string", "2 plan_hash string"},
			"CheckExecutedResponse":    {"1 is_executed bool", "2 execution ExecutionRecord"},
			"GetExecutionStatsRequest": {"1 session_id string", "2 symbol string"},
			"GetExecutionStatsResponse": {
				"1 total_executions int32", "2 successful_executions int32", "3 failed_executions int32",
				"4 win_rate float", "5 duplicate_prevented int32", "6 recent_executions repeated ExecutionRecord",
			},
			"MemoryWriteRequest":      {"1 session_id string", "2 event Event", "3 metadata map<string,string>"},
			"MemoryWriteResponse":     {"1 success bool", "2 error_message string"},
			"MemoryRetrieveRequest":   {"1 session_id string", "2 query string", "3 k int32", "4 filters map<string,string>"},
			"MemoryRetrieveResponse":  {"1 results repeated string", "2 success bool", "3 error_message string"},
			"MemorySummarizeRequest":  {"1 session_id string", "2 max_events int32"},
			"MemorySummarizeResponse": {"1 summary string", "2 event_count int32", "3 success bool", "4 error_message string"},
		},
		"agent": {
			"AgentState": {
				"1 agent_id string", "2 persistent_state bytes", "3 ephemeral_context bytes",
				"4 last_update_ms int64", "5 metadata map<string,string>",
			},
			"AgentConfig": {
				"1 agent_id string", "2 agent_type string", "3 subscribed_topics repeated string",
				"4 capabilities repeated string", "5 parameters map<string,string>",
			},
			"AgentResponse": {
				"1 agent_id string", "2 actions repeated Action", "3 updated_state AgentState", "4 generated_events repeated Event",
			},
			"Action":                   {"1 action_type string", "2 parameters map<string,string>", "3 payload bytes", "4 priority int32"},
			"CreateAgentResponse":      {"1 success bool", "2 error_message string"},
			"DeleteAgentRequest":       {"1 agent_id string"},
			"DeleteAgentResponse":      {"1 success bool"},
			"GetAgentStateRequest":     {"1 agent_id string"},
			"UpdateAgentStateResponse": {"1 success bool"},
			"SendEventRequest":         {"1 agent_id string", "2 event Event"},
		},
		"plugin": {
			"PluginMeta": {
				"1 plugin_id string", "2 name string", "3 version string", "4 type PluginType",
				"5 capabilities repeated string", "6 config map<string,string>",
			},
			"PluginResponse":  {"1 success bool", "2 error_message string", "3 result bytes", "4 output_events repeated Event"},
			"HealthStatus":    {"1 healthy bool", "2 message string", "3 metrics map<string,string>"},
			"HealthRequest":   {"1 plugin_id string"},
			"ShutdownRequest": {"1 plugin_id string", "2 force bool"},
		},
	}
}

// wireEnums is every enum: "name number".
func wireEnums() map[string]map[string][]string {
	return map[string]map[string][]string{
		"event": {"QoSLevel": {"QOS_REALTIME 0", "QOS_BATCHED 1", "QOS_BACKGROUND 2"}},
		"action": {
			"ProviderKind": {"PROVIDER_NATIVE 0", "PROVIDER_WASM 1", "PROVIDER_GRPC 2", "PROVIDER_MCP 3"},
			"ToolStatus":   {"TOOL_OK 0", "TOOL_ERROR 1", "TOOL_TIMEOUT 2", "TOOL_NOT_FOUND 3", "TOOL_INVALID_ARGUMENTS 4"},
			"ActionStatus": {"ACTION_OK 0", "ACTION_ERROR 1", "ACTION_TIMEOUT 2", "ACTION_RETRYABLE 3"},
		},
		"bridge": {},
		"memory": {"MemoryOpType": {
			"MEMORY_OP_SAVE_PLAN 0", "MEMORY_OP_GET_RECENT_PLANS 1", "MEMORY_OP_CHECK_DUPLICATE 2", "MEMORY_OP_MARK_EXECUTED 3",
			"MEMORY_OP_GET_EXECUTION_STATS 4", "MEMORY_OP_APPEND_EVENT 5", "MEMORY_OP_RETRIEVE 6", "MEMORY_OP_SUMMARIZE 7",
		}},
		"agent": {},
		"plugin": {"PluginType": {
			"PLUGIN_FEATURE_EXTRACTOR 0", "PLUGIN_MODEL_BACKEND 1", "PLUGIN_TOOL 2", "PLUGIN_ACTUATOR 3",
		}},
	}
}

// wireServices is every service: "method request response".
func wireServices() map[string]map[string][]string {
	return map[string]map[string][]string{
		"event": {"EventBus": {
			"Publish PublishRequest PublishResponse", "Subscribe SubscribeRequest stream Event",
			"Unsubscribe UnsubscribeRequest UnsubscribeResponse", "GetStats StatsRequest StatsResponse",
		}},
		"action": {"ToolService": {"ListTools ListToolsRequest ListToolsResponse", "Call ToolCall ToolResult"}},
		"bridge": {"Bridge": {
			"RegisterAgent AgentRegisterRequest AgentRegisterResponse", "EventStream stream ClientEvent stream ServerEvent",
			"ForwardToolCall ToolCall ToolResult", "Heartbeat HeartbeatRequest HeartbeatResponse",
		}},
		"memory": {"MemoryService": {
			"SavePlan SavePlanRequest SavePlanResponse",
			"GetRecentPlans GetRecentPlansRequest GetRecentPlansResponse",
			"CheckDuplicate CheckDuplicateRequest CheckDuplicateResponse",
			"MarkExecuted MarkExecutedRequest MarkExecutedResponse",
			"CheckExecuted CheckExecutedRequest CheckExecutedResponse",
			"GetExecutionStats GetExecutionStatsRequest GetExecutionStatsResponse",
			"AppendEvent MemoryWriteRequest MemoryWriteResponse",
			"Retrieve MemoryRetrieveRequest MemoryRetrieveResponse",
			"SummarizeEpisode MemorySummarizeRequest MemorySummarizeResponse",
		}},
		"agent": {"AgentRuntime": {
			"CreateAgent AgentConfig CreateAgentResponse", "DeleteAgent DeleteAgentRequest DeleteAgentResponse",
			"GetAgentState GetAgentStateRequest AgentState", "UpdateAgentState AgentState UpdateAgentStateResponse",
			"SendEvent SendEventRequest AgentResponse",
		}},
		"plugin": {"Plugin": {
			"Init PluginMeta PluginResponse", "HandleEvent Event PluginResponse",
			"Health HealthRequest HealthStatus", "Shutdown ShutdownRequest PluginResponse",
		}},
	}
}

func files() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		loomv1pb.File_loom_v1_event_proto, loomv1pb.File_loom_v1_action_proto, loomv1pb.File_loom_v1_bridge_proto,
		loomv1pb.File_loom_v1_memory_proto, loomv1pb.File_loom_v1_agent_proto, loomv1pb.File_loom_v1_plugin_proto,
	}
}

// The descriptors we generate are those that agents out there speak: nothing is
// missing and nothing was added, for a number once used is taken for ever.
func TestDescriptorsMatchTheTable(t *testing.T) {
	messages, enums, services := map[string]map[string][]string{}, map[string]map[string][]string{}, map[string]map[string][]string{}
	for _, file := range files() {
		name, ok := strings.CutPrefix(strings.TrimSuffix(file.Path(), ".proto"), "loom/v1/")
		if !ok || file.Package() != "loom.v1" || file.Syntax() != protoreflect.Proto3 {
			t.Errorf("%s: package %s, syntax %v", file.Path(), file.Package(), file.Syntax())
		}
		if n := file.Extensions().Len(); n > 0 {
			t.Errorf("%s has %d extensions", file.Path(), n)
		}
		messages[name] = messagesOf(t, file.Messages())
		enums[name] = enumsOf(file.Enums())
		services[name] = servicesOf(file.Services())
	}
	for what, pair := range map[string][2]map[string]map[string][]string{
		"messages": {wireMessages(), messages}, "enums": {wireEnums(), enums}, "services": {wireServices(), services},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-table +generated):\n%s", what, diff)
		}
	}
}

func messagesOf(tb testing.TB, list protoreflect.MessageDescriptors) map[string][]string {
	tb.Helper()
	found := map[string][]string{}
	for i := range list.Len() {
		m := list.Get(i)
		for j := range m.Messages().Len() {
			if nested := m.Messages().Get(j); !nested.IsMapEntry() {
				tb.Errorf("%s is nested", nested.FullName())
			}
		}
		if m.Enums().Len()+m.Extensions().Len()+m.ReservedNames().Len()+m.ReservedRanges().Len() > 0 {
			tb.Errorf("%s holds enums, extensions or reserved fields", m.FullName())
		}
		fields := make([]string, m.Fields().Len())
		for j := range fields {
			fields[j] = fieldText(m.Fields().Get(j))
		}
		found[string(m.Name())] = fields
	}
	return found
}

func fieldText(f protoreflect.FieldDescriptor) string {
	text := fmt.Sprintf("%d %s ", f.Number(), f.Name())
	switch {
	case f.IsMap():
		text += fmt.Sprintf("map<%s,%s>", typeText(f.MapKey()), typeText(f.MapValue()))
	case f.IsList():
		text += "repeated " + typeText(f)
	case f.HasOptionalKeyword():
		text += "optional " + typeText(f)
	default:
		text += typeText(f)
	}
	if o := f.ContainingOneof(); o != nil {
		text += " | " + string(o.Name())
	}
	return text
}

// typeText names a type of loom.v1 without its package; one of another package
// keeps it, and so is in no table.
func typeText(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return shortName(f.Message())
	case f.Enum() != nil:
		return shortName(f.Enum())
	}
	return f.Kind().String()
}

func shortName(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), "loom.v1.")
}

func enumsOf(list protoreflect.EnumDescriptors) map[string][]string {
	found := map[string][]string{}
	for i := range list.Len() {
		values := list.Get(i).Values()
		texts := make([]string, values.Len())
		for j := range texts {
			texts[j] = fmt.Sprintf("%s %d", values.Get(j).Name(), values.Get(j).Number())
		}
		found[string(list.Get(i).Name())] = texts
	}
	return found
}

func servicesOf(list protoreflect.ServiceDescriptors) map[string][]string {
	found := map[string][]string{}
	for i := range list.Len() {
		methods := list.Get(i).Methods()
		texts := make([]string, methods.Len())
		for j := range texts {
			m := methods.Get(j)
			words := []string{string(m.Name())}
			if m.IsStreamingClient() {
				words = append(words, "stream")
			}
			words = append(words, shortName(m.Input()))
			if m.IsStreamingServer() {
				words = append(words, "stream")
			}
			texts[j] = strings.Join(slices.Concat(words, []string{shortName(m.Output())}), " ")
		}
		found[string(list.Get(i).Name())] = texts
	}
	return found
}
