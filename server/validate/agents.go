package validate

import (
	"errors"
	"math"
	"strings"

	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// ofAgents is together for the services of agents, events and tools, and for streams.
func (c *checker) ofAgents(r proto.Message) {
	switch r := r.(type) {
	case *loombridgev1.SpawnAgentRequest:
		if r.GetWithoutTools() && len(r.GetTools()) > 0 {
			c.add("tools", "do not go with without_tools")
		}
		if r.ForkFrom != nil && (r.GetWithoutTools() || len(r.GetTools()) > 0) {
			c.add("fork_from", "does not go with tools or without_tools: a fork has its parent's")
		}
	case *loombridgev1.CompleteTaskRequest:
		switch {
		case r.GetFailed():
			c.required("error", r.GetError(), children.MaxErrorBytes)
		case r.GetError() != "":
			c.add("error", "needs failed")
		}
		if r.GetConclusion() == "" && !r.GetFailed() {
			c.add("conclusion", "is required")
		}
	case *loombridgev1.SendMessageRequest:
		c.required("message.target_agent_id", r.GetMessage().GetTargetAgentId(), math.MaxInt)
		c.required("message.content", r.GetMessage().GetContent(), math.MaxInt)
		if r.GetMessage().GetCreateTime() != nil {
			c.add("message.create_time", setByServer)
		}
	case *loombridgev1.SubscribeRequest:
		c.topics(r.GetTopics(), nil)
	case *loombridgev1.AttachHello:
		c.topics(r.GetTopics(), nil)
		c.provided(r.GetTools())
	case *loombridgev1.ListToolsRequest:
		if r.GetTool() != "" && (len(r.GetLevels()) > 0 || r.GetPageSize() != 0 || r.GetPageToken() != "") {
			c.add("tool", "is of one tool: it can't be given with levels, page_size or page_token")
		}
	case *loombridgev1.ConnectMcpServerRequest:
		c.server(r)
	case *grpc_health_v1.HealthCheckRequest:
		c.size("service", len(r.GetService()), maxServiceBytes)
	}
}

// server checks which one is to be connected. What it may be is for package mcp to say.
func (c *checker) server(r *loombridgev1.ConnectMcpServerRequest) {
	field, given := "name", r.GetName()
	switch {
	case r.GetDefinition() == nil && r.GetName() == "":
		c.add("definition", "is required, or the name of a server that is there")
		return
	case r.GetDefinition() == nil:
	case r.GetName() != "" || r.GetAcceptChanged():
		c.add("name", "can't be given with a definition, nor can accept_changed")
		return
	default:
		field, given = "definition.name", r.GetDefinition().GetName()
	}
	c.required(field, given, math.MaxInt)
	c.name(field, given, mcp.MaxServerName)
}

// ConcludedTask checks the fields other than the conclusion of a task that is no child, in
// its session.
func ConcludedTask(r *loombridgev1.CompleteTaskRequest, sessionID string) error {
	var c checker
	if asked := r.GetSessionId(); asked != "" && asked != sessionID {
		c.add("session_id", "is not the session of the task, which is %q", sessionID)
	}
	if len(r.GetGrants()) > 0 {
		c.add("grants", "are for the task of a child")
	}
	c.size("conclusion", len(r.GetConclusion()), session.MaxTaskResultBytes)
	return c.err()
}

// provided checks the tools of an agent.
func (c *checker) provided(list []*loombridgev1.ToolDescriptor) {
	seen := map[string]bool{}
	for i, tool := range list {
		broken := len(c.violations)
		c.required("name", tool.GetName(), tools.MaxNameBytes)
		if strings.ContainsFunc(tool.GetName(), notInToolName) {
			c.add("name", "may hold letters, digits and `_ : . - /` only")
		}
		if seen[tool.GetName()] {
			c.add("name", "is given twice")
		}
		seen[tool.GetName()] = true
		c.size("description", len(tool.GetDescription()), maxToolDescriptionBytes)
		c.size("parameters_schema_json", len(tool.GetParametersSchemaJson()), tools.MaxSchemaBytes)
		c.between("level", int64(tool.GetLevel()), 0, tools.LevelScript)
		c.served(tool)
		if len(c.violations) > broken {
			c.within(broken, Item("tools", i))
		}
	}
}

// setByServer is the problem of what a request can't say.
const setByServer = "is set by the server alone"

// served refuses what only the server says of a tool.
func (c *checker) served(tool *loombridgev1.ToolDescriptor) {
	c.none(setByServer,
		asked{"category", tool.GetCategory() != ""}, asked{"mutates", tool.GetMutates()}, asked{"agent_id", tool.GetAgentId() != ""},
		asked{"cli_equivalents[0]", len(tool.GetCliEquivalents()) > 0}, asked{"tokens", tool.GetTokens() != 0})
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
	if len(already)+len(list) > maxTopics {
		c.add("topics", "has more than %d items", maxTopics)
		return
	}
	seen := map[string]struct{}{}
	for i, p := range list {
		broken := len(c.violations)
		_, twice := seen[p.GetTopic()]
		if _, known := already[p.GetTopic()]; known || twice {
			c.add("topic", "is named twice")
		}
		seen[p.GetTopic()] = struct{}{}
		if p.GetSince() != nil && p.AfterSequence != nil {
			c.add("since", "can't be combined with after_sequence")
		}
		c.pattern(p)
		if len(c.violations) > broken {
			c.within(broken, Item("topics", i))
		}
	}
}

func (c *checker) pattern(p *loombridgev1.TopicPosition) {
	if p.GetTopic() == "" || len(p.GetTopic()) > pattern.MaxTopicBytes {
		return
	}
	pattern, err := pattern.Parse(p.GetTopic())
	if err != nil {
		if bad, ok := errors.AsType[*invalid.Error](err); ok {
			c.add("topic", "%s", bad.Problem)
		}
		return
	}
	if _, exact := pattern.Exact(); !exact && p.AfterSequence != nil {
		c.add("topic", "is a pattern, which after_sequence is not for; use since")
	}
}

// AttachSubscribe checks topics to be added to a stream.
func AttachSubscribe(r *loombridgev1.SubscribeRequest, agentID string, already map[string]struct{}) error {
	var c checker
	c.fields(r.ProtoReflect(), false)
	c.attached(r.GetAgentId(), agentID)
	c.topics(r.GetTopics(), already)
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
