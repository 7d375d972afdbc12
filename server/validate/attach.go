package validate

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Limits of what an agent says about itself. Each is stated in the field's
// comment in the protos; changing one breaks clients.
const (
	// maxProvidedTools bounds the tools of one agent: all of them stand in
	// prompts.
	maxProvidedTools = 256
	// maxEquivalents bounds commands that do the like of a tool, of which requests have none.
	maxEquivalents = 16
	// maxToolDescriptionBytes bounds what a tool says of itself.
	maxToolDescriptionBytes = 16 * kib
	// maxSchemaBytes bounds the schema of one tool.
	maxSchemaBytes = tools.MaxSchemaBytes
	// maxAgentMetadata and maxAgentMetadataBytes bound what describes an agent.
	maxAgentMetadata      = 32
	maxAgentMetadataBytes = 8 * kib
	// maxCapabilities and maxCapabilityBytes bound what others may look for.
	maxCapabilities    = 64
	maxCapabilityBytes = 256
	// maxUnsubscribed bounds the topics that are taken away at once: a stream has
	// fewer.
	maxUnsubscribed = 1024
	// maxEventTypes and maxFilterHeaders bound what one topic lets through.
	maxEventTypes    = 64
	maxFilterHeaders = store.MaxHeaders

	// DefaultHeartbeat, minHeartbeat and maxHeartbeat are how often an agent
	// says that it is alive: often enough to be missed soon, not so often that
	// a thousand agents are heard of most.
	DefaultHeartbeat = 5 * time.Second
	minHeartbeat     = 100 * time.Millisecond
	maxHeartbeat     = time.Hour
)

// AttachHello checks the first message of an agent.
func AttachHello(r *loombridgev1.AttachHello) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.topics(r.GetTopics(), nil)
	c.providedTools(r.GetTools())
	c.pairs("metadata", r.GetMetadata(), maxAgentMetadata, maxAgentMetadataBytes)
	if c.count("capabilities", len(r.GetCapabilities()), maxCapabilities) {
		c.texts("capabilities", r.GetCapabilities(), maxCapabilityBytes)
	}
	c.name("parent_id", r.GetParentId(), kv.MaxOwnerBytes)
	c.span("heartbeat_interval", r.GetHeartbeatInterval(), minHeartbeat, maxHeartbeat)
	return c.err()
}

func (c *checker) providedTools(list []*loombridgev1.ToolDescriptor) {
	if !c.count("tools", len(list), maxProvidedTools) {
		return
	}
	seen := map[string]bool{}
	for i, tool := range list {
		field := Item("tools", i) + "."
		c.required(field+"name", tool.GetName(), tools.MaxNameBytes)
		if strings.ContainsFunc(tool.GetName(), notInToolName) {
			c.add(field+"name", "may hold letters, digits and `_ : . - /` only")
		}
		if seen[tool.GetName()] {
			c.add(field+"name", "is given twice")
		}
		seen[tool.GetName()] = true
		c.text(field+"description", tool.GetDescription(), maxToolDescriptionBytes)
		c.text(field+"parameters_schema_json", tool.GetParametersSchemaJson(), maxSchemaBytes)
		c.between(field+"level", int64(tool.GetLevel()), 0, tools.LevelScript)
		c.servedTool(field, tool)
	}
}

// setByServer is the problem of what a request can't say.
const setByServer = "is set by the server alone"

// servedTool refuses what only the server says of a tool.
func (c *checker) servedTool(prefix string, tool *loombridgev1.ToolDescriptor) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"category", tool.GetCategory() != ""},
		{"mutates", tool.GetMutates()},
		{"agent_id", tool.GetAgentId() != ""},
		{"cli_equivalents[0]", len(tool.GetCliEquivalents()) > 0},
		{"tokens", tool.GetTokens() != 0},
	} {
		if field.set {
			c.add(prefix+field.name, setByServer)
		}
	}
}

func notInToolName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_:.-/", r)
}

// topics checks additions to already subscribed topics.
func (c *checker) topics(list []*loombridgev1.TopicPosition, already map[string]struct{}) {
	if !c.count("topics", len(already)+len(list), maxTopics) {
		return
	}
	seen := map[string]struct{}{}
	for i, topic := range list {
		field := Item("topics", i) + "."
		_, twice := seen[topic.GetTopic()]
		if _, known := already[topic.GetTopic()]; known || twice {
			c.add(field+"topic", "is named twice")
		}
		seen[topic.GetTopic()] = struct{}{}
		c.topic(field, topic)
	}
}

func (c *checker) topic(field string, p *loombridgev1.TopicPosition) {
	c.required(field+"topic", p.GetTopic(), pattern.MaxTopicBytes)
	c.between(field+"after_sequence", p.GetAfterSequence(), 0, math.MaxInt64)
	c.time(field+"since", p.GetSince())
	if p.GetSince() != nil && p.AfterSequence != nil {
		c.add(field+"since", "can't be combined with after_sequence")
	}
	c.enum(field+"quality_of_service", p.GetQualityOfService())
	if c.count(field+"event_types", len(p.GetEventTypes()), maxEventTypes) {
		c.texts(field+"event_types", p.GetEventTypes(), store.MaxTypeBytes)
	}
	c.pairs(field+"headers", p.GetHeaders(), maxFilterHeaders, store.MaxHeadersBytes)
	c.text(field+"session_id", p.GetSessionId(), store.MaxSessionBytes)
	c.pattern(field+"topic", p)
}

func (c *checker) pattern(field string, p *loombridgev1.TopicPosition) {
	if p.GetTopic() == "" || len(p.GetTopic()) > pattern.MaxTopicBytes {
		return
	}
	pattern, err := pattern.Parse(p.GetTopic())
	if err != nil {
		if bad, ok := errors.AsType[*invalid.Error](err); ok {
			c.add(field, "%s", bad.Problem)
		}
		return
	}
	if _, exact := pattern.Exact(); !exact && p.AfterSequence != nil {
		c.add(field, "is a pattern, which after_sequence is not for; use since")
	}
}

// texts refuses items of more than limit bytes.
func (c *checker) texts(field string, items []string, limit int) {
	for i, text := range items {
		if len(text) > limit {
			c.text(Item(field, i), text, limit)
		}
	}
}

// names refuses items that are no name.
func (c *checker) names(field string, items []string, limit int) {
	for i, name := range items {
		if name == "" || len(name) > limit || strings.IndexByte(name, 0) >= 0 {
			c.requiredName(Item(field, i), name, limit)
		}
	}
}

// requiredTexts refuses empty items too.
func (c *checker) requiredTexts(field string, items []string, limit int) {
	for i, text := range items {
		if text == "" || len(text) > limit {
			c.required(Item(field, i), text, limit)
		}
	}
}

// pairs refuses too many, and more than limit bytes in all.
func (c *checker) pairs(field string, pairs map[string]string, count, limit int) {
	if !c.count(field, len(pairs), count) {
		return
	}
	size := 0
	for key, value := range pairs {
		size += len(key) + len(value)
	}
	if size > limit {
		c.add(field, "are %d bytes, at most %d are allowed", size, limit)
	}
}

// AttachHeartbeat checks how many signals a heartbeat brings; the signals themselves are
// checked one by one, so that a bad one stops no other.
func AttachHeartbeat(r *loombridgev1.AttachHeartbeat) error {
	var c checker
	c.count("signals", len(r.GetSignals()), working.MaxSignals)
	return c.err()
}

// AttachSubscribe checks topics to be added to a stream.
func AttachSubscribe(r *loombridgev1.SubscribeRequest, agentID string, already map[string]struct{}) error {
	var c checker
	c.attached(r.GetAgentId(), agentID)
	if len(r.GetTopics()) == 0 {
		c.add("topics", "is required")
	}
	c.topics(r.GetTopics(), already)
	return c.err()
}

// AttachUnsubscribe checks topics that are taken away.
func AttachUnsubscribe(r *loombridgev1.AttachUnsubscribe) error {
	var c checker
	if len(r.GetTopics()) == 0 {
		c.add("topics", "is required")
	}
	c.count("topics", len(r.GetTopics()), maxUnsubscribed)
	return c.err()
}

// Published is for an EmitRequest inside a stream of the agent.
func Published(r *loombridgev1.EmitRequest, agentID string) error {
	var c checker
	c.emit(r)
	c.attached(r.GetAgentId(), agentID)
	return c.err()
}

// attached refuses what a stream of one agent says for another one.
func (c *checker) attached(agentID, streams string) {
	if agentID != "" && agentID != streams {
		c.add("agent_id", "is not the agent that attached")
	}
}
