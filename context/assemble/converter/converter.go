package converter

import (
	"encoding/json"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// The actions that become messages. Any other becomes none, so the result of a tool
// does not, either.
const (
	ActionExecute            = "execute"
	ActionThinking           = "node.thinking"
	ActionToolCall           = "node.tool_call"
	ActionMessage            = "node.message"
	ActionDelegationRequest  = "node.delegation_request"
	ActionDelegationResponse = "node.delegation_response"
	ActionPlanning           = "node.planning"
)

// maxArgsChars bounds the arguments in the text of a call, in code points.
const maxArgsChars = 200

// unknownSource is the agent of a delegation without one.
const unknownSource = "unknown"

// rule says what becomes of an action.
type rule struct {
	// source is the row that says in which role it may stand.
	source instruct.Source
	// words are the text of the message; empty gives no message.
	words func(*facts) string
}

// rules are the rules by action.
func rules(action string) (rule, bool) {
	r, ok := map[string]rule{
		ActionThinking:           {instruct.Tasks, (*facts).content},
		ActionExecute:            {instruct.Execute, (*facts).content},
		ActionToolCall:           {instruct.Tasks, (*facts).call},
		ActionMessage:            {instruct.Direct, (*facts).direct},
		ActionDelegationRequest:  {instruct.Tasks, (*facts).delegated},
		ActionDelegationResponse: {instruct.Tasks, (*facts).reported},
		ActionPlanning:           {instruct.Plans, (*facts).plan},
	}[action]
	return r, ok
}

// Reader is whose prompt it is.
type Reader struct {
	// Agent is its id.
	Agent string
	// Instructors are the other agents whose messages and plans instruct it. What any other
	// agent says stands in the role of the assistant, with its name in front.
	Instructors []string
}

// writes says what kind of writer an agent is for the reader.
func (r *Reader) writes(agent string) instruct.Who {
	switch {
	case agent == r.Agent:
		return instruct.Program
	case slices.Contains(r.Instructors, agent):
		return instruct.Instructor
	}
	return instruct.Agent
}

// Message returns the message that a prompt shows for a task of an agent, with forged
// markup of prompts escaped (package guard). It is false for an action without a rule and
// for one without text. Package instruct assigns the role; requests in a direct message are
// wishes, not instructions.
func (r *Reader) Message(t *session.Task, writtenBy string) (session.Message, bool) {
	rule, ok := rules(t.Action)
	if !ok {
		return session.Message{}, false
	}
	f := factsOf(t)
	f.writer = text.OneLine(text.Valid(writtenBy))
	f.foreign = writtenBy != r.Agent
	words := rule.words(f)
	if words == "" {
		return session.Message{}, false
	}
	row := instruct.Of(rule.source)
	m := session.Message{Role: row.RoleOf(r.writes(writtenBy)), Content: words}
	if rule.source == instruct.Direct {
		asked, ok := f.role()
		if m.Role = row.Otherwise; ok && row.Instructs(r.writes(writtenBy)) {
			m.Role = asked
		}
	}
	return m, true
}

// Calling is the text of a call: the tool's name and its arguments as JSON, cut, or
// dots where none are given. args that are no JSON stand there as they are.
func Calling(tool string, args json.RawMessage) string {
	var given string
	if value, err := text.DecodeJSON(args); err == nil && len(args) > 0 {
		given = string(text.SpacedJSON(value))
	} else {
		given = text.OneLine(text.Valid(string(args)))
	}
	switch given {
	case "", "{}", "null":
		given = text.Dots
	default:
		if head, cut := text.HeadChars(given, maxArgsChars); cut {
			given = head + text.Dots
		}
	}
	return guard.Inline("[Calling " + text.OneLine(text.Valid(tool)) + "(" + given + ")]")
}
