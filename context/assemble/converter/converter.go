package converter

import (
	"encoding/json"

	"github.com/loom-bridge/loom-bridge/context/guard"
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

// unknownSource is the agent of a delegation that nobody names.
const unknownSource = "unknown"

// rule says what becomes of an action.
type rule struct {
	role session.Role
	// words are the text of the message; empty gives no message.
	words func(*facts) string
	// ownRole lets the parameters choose the role.
	ownRole bool
}

// rules are the rules by action.
func rules(action string) (rule, bool) {
	r, ok := map[string]rule{
		ActionThinking:           {role: session.Assistant, words: (*facts).content},
		ActionExecute:            {role: session.User, words: (*facts).content},
		ActionToolCall:           {role: session.Assistant, words: (*facts).call},
		ActionMessage:            {role: session.Assistant, words: (*facts).direct, ownRole: true},
		ActionDelegationRequest:  {role: session.Assistant, words: (*facts).delegated},
		ActionDelegationResponse: {role: session.Assistant, words: (*facts).reported},
		ActionPlanning:           {role: session.System, words: (*facts).plan},
	}[action]
	return r, ok
}

// Message returns the message that stands for a task, in which nobody writes what only a
// prompt itself does (package guard); false where none does: of an
// action without a rule, and of one that says nothing.
func Message(t *session.Task) (session.Message, bool) {
	r, ok := rules(t.Action)
	if !ok {
		return session.Message{}, false
	}
	f := factsOf(t)
	words := r.words(f)
	if words == "" {
		return session.Message{}, false
	}
	m := session.Message{Role: r.role, Content: words}
	if role, own := f.role(); own && r.ownRole {
		m.Role = role
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
