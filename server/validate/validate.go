package validate

import (
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits of request fields that belong to no domain package. Each is stated in
// the field's comment in the protos; changing one breaks clients.
const (
	// MaxIDBytes bounds request, turn and call ids.
	MaxIDBytes = kv.MaxRequestIDBytes
	// maxModelBytes bounds the name of a model.
	maxModelBytes = 128
	// maxThoughtBytes bounds what a model said before a call.
	maxThoughtBytes = 64 * kib
	// maxGoalBytes bounds the goal of a prompt.
	maxGoalBytes = 256 * kib
	// maxSystemBytes bounds a system prompt.
	maxSystemBytes = mib
	// maxFoundBytes bounds the text of FindInPrompts.
	maxFoundBytes = 4 * kib
	// maxCountedBytes bounds the text of CountTokens.
	maxCountedBytes = mib
	// maxBlobNameBytes bounds a path, step id or ref.
	maxBlobNameBytes = 512
	// maxPageTokenBytes bounds a page token; ours are much shorter.
	maxPageTokenBytes = 128
	// maxTopics bounds the topics of one subscription.
	maxTopics = 64
	// maxToolTimeout bounds one tool call.
	maxToolTimeout = 10 * time.Minute
	// maxServiceBytes bounds the name in a health check: a watch keeps it for as
	// long as it lasts. Those that there are have much shorter names.
	maxServiceBytes = 256
	// maxTTL bounds how far ahead an expiry may lie.
	maxTTL = 100 * 365 * 24 * time.Hour
)

func (c *checker) agent(agentID string) { c.requiredName("agent_id", agentID, kv.MaxOwnerBytes) }

func (c *checker) user(userID string) { c.name("user_id", userID, kv.MaxOwnerBytes) }

func (c *checker) session(sessionID string) {
	c.name("session_id", sessionID, session.MaxSessionIDBytes)
}

// page checks which page of a list is asked for, of at most most items. The token is known
// as one of this list.
func (c *checker) page(r page.Asked, most int64, known bool) {
	c.between("page_size", int64(r.GetPageSize()), 0, most)
	if !known {
		c.add("page_token", "did not come from this listing")
	}
}

// namesPage checks a page of a list whose names have at most limit bytes.
func (c *checker) namesPage(r page.Asked, of page.Names, limit int) {
	_, known := of.Parse(r.GetPageToken(), limit)
	c.page(r, page.MaxSize, known)
}

func (c *checker) request(requestID string) { c.name("request_id", requestID, MaxIDBytes) }

// ToolRequest checks what BridgeService.Tool is asked.
func ToolRequest(r *loombridgev1.ToolRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	if r.GetCallId() == "" { // else a model wrote them, which reads in the step what is wrong
		c.required("name", r.GetName(), tools.MaxNameBytes)
		c.text("arguments_json", r.GetArgumentsJson(), tools.MaxArgumentsBytes)
	}
	c.session(r.GetSessionId())
	c.span("timeout", r.GetTimeout(), 1, maxToolTimeout)
	c.text("thought", r.GetThought(), maxThoughtBytes)
	c.name("turn_id", r.GetTurnId(), MaxIDBytes)
	c.name("call_id", r.GetCallId(), session.MaxCallIDBytes)
	c.request(r.GetRequestId())
	return c.err()
}

// ListAuditRequest checks what ToolService.ListAudit is asked.
func ListAuditRequest(r *loombridgev1.ListAuditRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.name("caller_id", r.GetCallerId(), kv.MaxOwnerBytes)
	c.session(r.GetSessionId())
	c.text("tool", r.GetTool(), tools.MaxNameBytes)
	c.enum("outcome", r.GetOutcome())
	c.time("start_time", r.GetStartTime())
	c.time("end_time", r.GetEndTime())
	_, known := page.ParseAuditToken(r.GetPageToken())
	c.page(r, audit.MaxPage, known)
	return c.err()
}

// ListToolsRequest checks what ToolService.ListTools is asked.
func ListToolsRequest(r *loombridgev1.ListToolsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	if c.count("levels", len(r.GetLevels()), tools.LevelScript) {
		for i, level := range r.GetLevels() {
			c.between(Item("levels", i), int64(level), tools.LevelFunction, tools.LevelScript)
		}
	}
	c.namesPage(r, page.Tools, tools.MaxNameBytes)
	c.name("tool", r.GetTool(), tools.MaxNameBytes)
	if r.GetTool() != "" && (len(r.GetLevels()) > 0 || r.GetPageSize() != 0 || r.GetPageToken() != "") {
		c.add("tool", "is of one tool: it can't be given with levels, page_size or page_token")
	}
	return c.err()
}

// EmitRequest checks what BridgeService.Emit is asked.
func EmitRequest(r *loombridgev1.EmitRequest) error {
	var c checker
	c.emit(r)
	return c.err()
}

func (c *checker) emit(r *loombridgev1.EmitRequest) {
	c.agent(r.GetAgentId())
	c.required("topic", r.GetTopic(), pattern.MaxTopicBytes)
	c.text("payload_json", r.GetPayloadJson(), store.MaxPayloadBytes)
	c.bytes("payload_bytes", len(r.GetPayloadBytes()), store.MaxPayloadBytes)
	c.pairs("headers", r.GetHeaders(), store.MaxHeaders, store.MaxHeadersBytes)
	c.enum("delivery", r.GetDelivery())
	c.session(r.GetSessionId())
	c.name("event_id", r.GetEventId(), store.MaxIDBytes)
	c.request(r.GetRequestId())
	c.text("type", r.GetType(), store.MaxTypeBytes)
	if c.count("tags", len(r.GetTags()), store.MaxTags) {
		c.texts("tags", r.GetTags(), store.MaxTagBytes)
	}
}

// SubscribeRequest checks what EventService.Subscribe is asked.
func SubscribeRequest(r *loombridgev1.SubscribeRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	if len(r.GetTopics()) == 0 {
		c.add("topics", "is required")
	}
	c.topics(r.GetTopics(), nil)
	return c.err()
}

// HealthCheckRequest checks the name of a service whose health is asked for.
func HealthCheckRequest(r *grpc_health_v1.HealthCheckRequest) error {
	var c checker
	c.text("service", r.GetService(), maxServiceBytes)
	return c.err()
}
