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
	// writer is who has written it, foreign says that it is not who reads.
	writer  string
	foreign bool
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

// content is what it says; in front of what another agent says stands who that is.
func (f *facts) content() string {
	content := text.Seen(f.said("content"))
	if content == "" || !f.foreign {
		return guard.Text(content)
	}
	return f.from("From", content)
}

// from is a text with who wrote it in front.
func (f *facts) from(head, words string) string {
	return "[" + head + " " + named(f.writer) + "] " + guard.Inline(words)
}

// call is a call of a tool, or empty where no tool is named.
func (f *facts) call() string {
	tool := f.said("tool_name", "tool", "name")
	if tool == "" {
		return ""
	}
	var given json.RawMessage
	for _, name := range []string{"args", "arguments", "params"} {
		if args, ok := f.parameters[name]; ok {
			given = argsOf(args)
			break
		}
	}
	if f.foreign {
		return f.from("From", Calling(tool, given))
	}
	return Calling(tool, given)
}

// argsOf returns arguments as JSON; a string may contain JSON itself.
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
	content := text.Seen(f.said("content"))
	if content == "" {
		return ""
	}
	return f.from("Direct message from", content)
}

// brackets would end what a message says of where it is from.
var brackets = strings.NewReplacer("[", "(", "]", ")")

// maxNameChars bounds a name within brackets.
const maxNameChars = 256

// named is a name as it stands within brackets.
func named(agent string) string {
	return guard.Inline(text.CutChars(brackets.Replace(cmp.Or(text.OneLine(text.Valid(agent)), unknownSource)), maxNameChars, text.Ellipsis))
}

// source is the agent of a delegation: for what another agent has written, that agent.
func (f *facts) source() string {
	if f.foreign {
		return named(f.writer)
	}
	return named(cmp.Or(f.name("source", "source_agent"), f.task.SourceAgent))
}

func (f *facts) delegated() string { return f.delegation("request", f.said("subtask")) }

func (f *facts) reported() string {
	result := f.said("result")
	result = cmp.Or(result, f.task.Result)
	return f.delegation("response", result)
}

func (f *facts) delegation(what, words string) string {
	if words == "" {
		return ""
	}
	return "[Delegation " + what + " from " + f.source() + "] " + guard.Inline(text.Seen(words))
}

// plan is the plan of the parent, or empty where it says nothing. It speaks in the role of
// the system, so each part stays on its line.
func (f *facts) plan() string {
	goal, reasoning, steps := f.name("goal"), f.name("reasoning"), f.steps()
	if goal == "" && reasoning == "" && len(steps) == 0 {
		return ""
	}
	var b strings.Builder
	head := "[Parent Plan] "
	if f.foreign {
		head = "[Parent Plan from " + named(f.writer) + "] "
	}
	b.WriteString(head + "Goal: " + goal)
	if reasoning != "" {
		b.WriteString("\nReasoning: " + reasoning)
	}
	fmt.Fprintf(&b, "\nSteps (%d):", len(steps))
	for i, step := range steps {
		fmt.Fprintf(&b, "\n%d. %s", i+1, step)
	}
	return guard.Inline(b.String())
}

// steps returns the steps of a plan, each on one line: a step is a text or an object with a
// usual text field.
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
