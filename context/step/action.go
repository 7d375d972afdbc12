package step

import (
	"regexp"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Action is a call that a model wrote as text, because it was offered no tools.
type Action struct {
	// Name is the tool as the model wrote it; "bash" where it wrote a command alone.
	Name string
	// Args are the arguments. A command, or an input that is no JSON object, stands
	// under "command" or "input".
	Args map[string]any
	// Text is the action as the model wrote it, without the text before it, fences, and
	// line feeds next to tags.
	Text string
}

// toolBash is what a command without a tool is called.
const toolBash = "bash"

// maxActionBytes bounds the text that is looked through for an action, from its
// end.
const maxActionBytes = 256 << 10

var (
	// fence is a fenced block with its language.
	fence = regexp.MustCompile("(?ms)^[ \t]*```([\\w+-]*)[^\n]*\n(.*?)^[ \t]*```")
	// actionLine and inputLine match the lines of thought/action formats.
	actionLine = regexp.MustCompile(`(?m)^Action:[ \t]*(.*)$`)
	inputLine  = regexp.MustCompile(`(?ms)^Action Input:[ \t]*(.*?)(?:^Observation:|\z)`)
	// calledForm is "name[input]" or "name(input)".
	calledForm = regexp.MustCompile(`(?s)^([\w:.-]+)\s*[\[(](.*)[\])]$`)
	// closing ends an action in a tag; its name is the tag's.
	closing = regexp.MustCompile(`</(command|action|bash|invoke|function|tool\w*|execute\w*)>`)
	tagName = regexp.MustCompile(`(?:name="([^"]+)"|=([\w:.-]+))`)
	// parameter is an argument in its own tag: "<parameter=path>a.py</parameter>" or
	// `<parameter name="path">a.py</parameter>`.
	parameter = regexp.MustCompile(`(?s)<parameter(?:=([\w:.-]+)|\s+name="([^"]+)")\s*>(.*?)</parameter>`)
	// besideTags are line feeds that part tags from what they hold.
	besideTags = regexp.MustCompile(`(</?(?:function|parameter|invoke|tool\w*)[^<>\n]*>)\n|\n(</(?:function|parameter|invoke|tool\w*)>)`)
	// nested begins a body that is itself an action in a tag.
	nested = regexp.MustCompile(`^\s*<(?:function|invoke)\b`)
)

// ParseAction finds the action in what a model said: the last one in a fenced
// block, behind "Action:", or in a tag; or all of it, where it is a JSON object with
// a name and arguments. false says that there is none.
func ParseAction(s string) (Action, bool) {
	s = text.Tail(s, maxActionBytes)
	if a, ok := jsonAction(strings.TrimSpace(s)); ok && len(a.Args) > 0 {
		return a, true
	}
	if a, ok := actionBehindLine(s); ok {
		return a, true
	}
	if a, ok := actionInTag(s); ok {
		return a, true
	}
	blocks := fence.FindAllStringSubmatch(s, -1)
	if len(blocks) == 0 {
		return Action{}, false
	}
	last := blocks[len(blocks)-1]
	return actionOf(last[1], last[2])
}

// actionOf is what a block of a language asks for.
func actionOf(language, body string) (Action, bool) {
	body = strings.TrimSpace(body)
	switch a, isCall := jsonAction(body); {
	case body == "":
		return Action{}, false
	case isCall:
		return a, true
	}
	switch language {
	case "", "bash", "sh", "shell", "zsh", "console":
		return Action{toolBash, map[string]any{argCommand: body}, body}, true
	}
	return Action{language, map[string]any{"input": body}, body}, true
}

// actionBehindLine reads "Action: …", with or without "Action Input: …".
func actionBehindLine(text string) (Action, bool) {
	lines := actionLine.FindAllStringSubmatchIndex(text, -1)
	if len(lines) == 0 {
		return Action{}, false
	}
	last := lines[len(lines)-1]
	said, whole := strings.TrimSpace(text[last[2]:last[3]]), strings.TrimSpace(text[last[2]:])
	if input := inputLine.FindStringSubmatch(text[last[1]:]); input != nil && said != "" {
		return Action{said, inputOf(input[1]), whole}, true
	}
	if a, ok := jsonAction(whole); ok {
		return a, true
	}
	if form := calledForm.FindStringSubmatch(said); form != nil {
		return Action{form[1], inputOf(form[2]), said}, true
	}
	return Action{said, map[string]any{}, said}, said != "" && !strings.HasPrefix(said, "```")
}

// actionInTag reads the last tag that holds an action.
func actionInTag(text string) (Action, bool) {
	ends := closing.FindAllStringSubmatchIndex(text, -1)
	if len(ends) == 0 {
		return Action{}, false
	}
	last := ends[len(ends)-1]
	tag := text[last[2]:last[3]]
	begin := strings.LastIndex(text[:last[0]], "<"+tag)
	if begin < 0 {
		return Action{}, false
	}
	head, body, ok := strings.Cut(text[begin:last[0]], ">")
	if !ok {
		return Action{}, false
	}
	if nested.MatchString(body) {
		return actionInTag(body)
	}
	if name := tagName.FindStringSubmatch(head); name != nil {
		whole := besideTags.ReplaceAllString(text[begin:last[1]], "$1$2")
		return Action{name[1] + name[2], tagged(body), whole}, true
	}
	language := ""
	if code, ok := strings.CutPrefix(tag, "execute_"); ok {
		language = code
	}
	return actionOf(language, body)
}

// tagged returns the arguments in the body of a tag: parameters in nested tags, or one
// input.
func tagged(body string) map[string]any {
	found := parameter.FindAllStringSubmatch(body, -1)
	if len(found) == 0 {
		return inputOf(body)
	}
	args := make(map[string]any, len(found))
	for _, p := range found {
		args[p[1]+p[2]] = strings.TrimSuffix(strings.TrimPrefix(p[3], "\n"), "\n")
	}
	return args
}

// jsonAction reads a call that is a JSON object with a name and arguments.
func jsonAction(s string) (Action, bool) {
	if !strings.HasPrefix(s, "{") {
		return Action{}, false
	}
	value, err := text.DecodeJSON([]byte(s))
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return Action{}, false
	}
	name := ""
	for _, key := range []string{"tool", "name", "action", "tool_name", "function"} {
		if said, isText := object[key].(string); isText && name == "" {
			name = said
		}
	}
	for _, key := range []string{"args", "arguments", "parameters", "action_input", "input"} {
		switch input := object[key].(type) {
		case map[string]any:
			return Action{name, input, s}, name != ""
		case string:
			return Action{name, inputOf(input), s}, name != ""
		}
	}
	return Action{name, map[string]any{}, s}, name != ""
}

// inputOf is an input as arguments.
func inputOf(s string) map[string]any {
	s = strings.TrimSpace(s)
	if value, err := text.DecodeJSON([]byte(s)); err == nil {
		if object, ok := value.(map[string]any); ok {
			return object
		}
	}
	if s == "" {
		return map[string]any{}
	}
	return map[string]any{"input": s}
}
