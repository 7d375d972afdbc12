package converter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// facts are a task and its parameters.
type facts struct {
	task       *session.Task
	parameters map[string]any
}

func factsOf(t *session.Task) *facts {
	f := &facts{task: t}
	if value, err := text.DecodeJSON(t.Parameters); err == nil {
		f.parameters, _ = value.(map[string]any)
	}
	return f
}

// said is the first of some parameters that is text and not blank, or empty.
func (f *facts) said(names ...string) string {
	for _, name := range names {
		if s, ok := f.parameters[name].(string); ok && strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// name is said on one line.
func (f *facts) name(names ...string) string { return text.OneLine(f.said(names...)) }

func (f *facts) content() string { return guard.Text(f.said("content")) }

// call is a call of a tool, or empty where no tool is named.
func (f *facts) call() string {
	tool := f.said("tool_name", "tool", "name")
	if tool == "" {
		return ""
	}
	for _, name := range []string{"args", "arguments", "params"} {
		if args, given := f.parameters[name]; given {
			return Calling(tool, argsOf(args))
		}
	}
	return Calling(tool, nil)
}

// argsOf are arguments as JSON; those that are a string are JSON themselves, or not.
func argsOf(args any) json.RawMessage {
	if s, ok := args.(string); ok {
		return json.RawMessage(s)
	}
	return text.CanonicalJSON(args)
}

// role is the role that a direct message asks for.
func (f *facts) role() (session.Role, bool) {
	for _, role := range []session.Role{session.System, session.User, session.Assistant} {
		if f.parameters["context_role"] == role.String() {
			return role, true
		}
	}
	return 0, false
}

func (f *facts) direct() string {
	if _, own := f.role(); own {
		return f.content()
	}
	content := f.said("content")
	if content == "" {
		return ""
	}
	return "[Direct message] " + guard.Inline(content)
}

// brackets would end what a message says of where it is from.
var brackets = strings.NewReplacer("[", "(", "]", ")")

// source is the agent of a delegation.
func (f *facts) source() string {
	agent := cmp.Or(f.name("source", "source_agent"), text.OneLine(f.task.SourceAgent), unknownSource)
	return guard.Inline(brackets.Replace(agent))
}

func (f *facts) delegated() string { return f.delegation("request", f.said("subtask")) }

func (f *facts) reported() string {
	result := f.said("result")
	if result == "" {
		result = f.task.Result
	}
	return f.delegation("response", result)
}

func (f *facts) delegation(what, words string) string {
	if words == "" {
		return ""
	}
	return "[Delegation " + what + " from " + f.source() + "] " + guard.Inline(words)
}

// plan is the plan of the parent, or empty where it says nothing. It speaks in the role of
// the system, so each part stays on its line.
func (f *facts) plan() string {
	goal, reasoning, steps := f.name("goal"), f.name("reasoning"), f.steps()
	if goal == "" && reasoning == "" && len(steps) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("[Parent Plan] Goal: " + goal)
	if reasoning != "" {
		b.WriteString("\nReasoning: " + reasoning)
	}
	fmt.Fprintf(&b, "\nSteps (%d):", len(steps))
	for i, step := range steps {
		fmt.Fprintf(&b, "\n%d. %s", i+1, step)
	}
	return guard.Inline(b.String())
}

// steps are those of a plan, each on one line: texts, or objects that say it in a
// usual field.
func (f *facts) steps() []string {
	list, _ := f.parameters["steps"].([]any)
	steps := make([]string, 0, len(list))
	for _, item := range list {
		said := ""
		switch item := item.(type) {
		case string:
			said = item
		case map[string]any:
			own := facts{parameters: item}
			said = own.said("text", "description", "title", "step", "action")
		}
		if said == "" {
			said = string(text.SpacedJSON(item))
		}
		steps = append(steps, text.OneLine(said))
	}
	return steps
}
