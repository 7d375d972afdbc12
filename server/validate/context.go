package validate

import (
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// AppendMessagesRequest checks what SessionService.AppendMessages is asked.
func AppendMessagesRequest(r *loombridgev1.AppendMessagesRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	if len(r.GetMessages()) == 0 {
		c.add("messages", "is required")
	}
	c.messages(r.GetMessages())
	c.request(r.GetRequestId())
	return c.err()
}

func (c *checker) messages(messages []*loombridgev1.Message) {
	if !c.count("messages", len(messages), session.MaxMessages) {
		return
	}
	for i, m := range messages {
		c.message(Item("messages", i)+".", m)
	}
}

// message checks the form of one message; what belongs to which role is the
// session's own rule.
func (c *checker) message(field string, m *loombridgev1.Message) {
	if m.GetRole() == loombridgev1.Role_ROLE_UNSPECIFIED {
		c.add(field+"role", "is required")
	}
	c.enum(field+"role", m.GetRole())
	c.text(field+"content", m.GetContent(), session.MaxMessageBytes)
	c.text(field+"blocks_json", m.GetBlocksJson(), session.MaxMediaBytes)
	c.name(field+"name", m.GetName(), session.MaxNameBytes)
	c.name(field+"tool_call_id", m.GetToolCallId(), session.MaxCallIDBytes)
	c.text(field+"extra_json", m.GetExtraJson(), session.MaxMessageBytes)
	if !c.count(field+"tool_calls", len(m.GetToolCalls()), session.MaxToolCalls) {
		return
	}
	for i, call := range m.GetToolCalls() {
		inner := Item(field+"tool_calls", i) + "."
		c.name(inner+"id", call.GetId(), session.MaxCallIDBytes)
		c.requiredName(inner+"name", call.GetName(), session.MaxToolNameBytes)
		c.text(inner+"arguments_json", call.GetArgumentsJson(), session.MaxMessageBytes)
		c.text(inner+"extra_json", call.GetExtraJson(), session.MaxMessageBytes)
	}
}

// ListStepsRequest checks what SessionService.ListSteps is asked.
func ListStepsRequest(r *loombridgev1.ListStepsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	if r.GetPageToken() != "" && r.GetPageSize() == 0 {
		c.add("page_size", "is required with page_token")
	}
	_, known := page.ParseToken(r.GetPageToken())
	c.page(r, session.MaxListed, known)
	return c.err()
}

// GetStepRequest checks what SessionService.GetStep is asked.
func GetStepRequest(r *loombridgev1.GetStepRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	if _, ok := step.ParseID(r.GetStepId()); !ok {
		c.add("step_id", "is not `step_` and a number of at least three digits")
	}
	return c.err()
}

// AssembleRequest checks what PromptService.Assemble is asked.
func AssembleRequest(r *loombridgev1.AssembleRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.text("goal", r.GetGoal(), maxGoalBytes)
	c.name("model", r.GetModel(), maxModelBytes)
	c.between("max_tokens", int64(r.GetMaxTokens()), 0, math.MaxInt32)
	c.text("system", r.GetSystem(), maxSystemBytes)
	c.enum("format", r.GetFormat())
	c.history("history", r.GetHistory())
	c.prompt("settings", r.GetSettings())
	c.ownTools(r.GetTools())
	c.name("turn_id", r.GetTurnId(), MaxIDBytes)
	c.asOf(r)
	return c.err()
}

// ownTools checks the size of the caller's tools; what names they may have is the prompt's
// own rule.
func (c *checker) ownTools(all []*loombridgev1.ToolDescriptor) {
	if !c.count("tools", len(all), settings.MaxToolDefinitions) {
		return
	}
	for i, tool := range all {
		field := Item("tools", i) + "."
		c.requiredName(field+"name", tool.GetName(), settings.MaxToolNameBytes)
		c.text(field+"description", tool.GetDescription(), settings.MaxToolTextBytes)
		c.text(field+"parameters_schema_json", tool.GetParametersSchemaJson(), settings.MaxToolSchemaBytes)
		c.servedTool(field, tool)
		if tool.GetLevel() != 0 || tool.GetRequiresApproval() {
			c.add(field+"level", "is of tools that an agent provides, as is requires_approval")
		}
	}
}

// asOf checks which prompt of before is asked for: it is as it was sent, so nothing else
// can be said of it.
func (c *checker) asOf(r *loombridgev1.AssembleRequest) {
	switch r.GetAsOf().(type) {
	case nil:
		return
	case *loombridgev1.AssembleRequest_AsOfStepId:
		if _, ok := step.ParseID(r.GetAsOfStepId()); !ok {
			c.add("as_of_step_id", "is not `step_` and a number of at least three digits")
		}
	case *loombridgev1.AssembleRequest_AsOfPromptId:
		c.requiredName("as_of_prompt_id", r.GetAsOfPromptId(), session.MaxPromptIDBytes)
	}
	only := &loombridgev1.AssembleRequest{AgentId: r.GetAgentId(), SessionId: r.GetSessionId(), AsOf: r.GetAsOf()}
	if !proto.Equal(only, r) {
		c.add("as_of", "can be combined only with agent_id and session_id: an earlier prompt is returned as sent")
	}
}

// DiffPromptsRequest checks what PromptService.DiffPrompts is asked.
func DiffPromptsRequest(r *loombridgev1.DiffPromptsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.name("from_prompt_id", r.GetFromPromptId(), session.MaxPromptIDBytes)
	c.name("to_prompt_id", r.GetToPromptId(), session.MaxPromptIDBytes)
	return c.err()
}

// FindInPromptsRequest checks what PromptService.FindInPrompts is asked.
func FindInPromptsRequest(r *loombridgev1.FindInPromptsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.text("text", r.GetText(), maxFoundBytes)
	return c.err()
}

// CountTokensRequest checks what PromptService.CountTokens is asked.
func CountTokensRequest(r *loombridgev1.CountTokensRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.text("text", r.GetText(), maxCountedBytes)
	c.name("model", r.GetModel(), maxModelBytes)
	if len(r.GetMessages()) > 0 && r.GetText() != "" {
		c.add("text", "is not counted together with messages")
	}
	c.messages(r.GetMessages())
	return c.err()
}
