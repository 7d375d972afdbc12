package hooks

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxInputBytes bounds one report of a host. The longest is what a tool gave.
	MaxInputBytes = 32 << 20
	// maxSessionBytes and maxToolBytes are the native API's limits; longer names are cut.
	maxSessionBytes, maxToolBytes = 256, 128
	// maxIDBytes is the longest id of a call that is kept.
	maxIDBytes = 128
	// maxArgumentsBytes is the native API's limit of what a tool was given, and maxMemberBytes
	// what stays of a member of something longer.
	maxArgumentsBytes, maxMemberBytes = 1 << 20, 64 << 10
	// maxSaidBytes bounds a message, a little below the native API's bound; the rest is
	// left out.
	maxSaidBytes = 1<<20 - 4096
)

var (
	// ErrInput: a host's report is malformed.
	ErrInput = errors.New("hooks: bad input")
	// ErrUnknown: the host or the event does not exist.
	ErrUnknown = errors.New("hooks: unknown")
)

// kind is what happens in a session.
type kind int

const (
	started kind = iota
	prompted
	called
	failed
	compacting
	compacted
	replied
	stopped
)

// kinds are the events of all hosts by their names in small letters.
var kinds = map[string]kind{
	"sessionstart": started, "userpromptsubmit": prompted, "beforesubmitprompt": prompted,
	"posttooluse": called, "posttoolusefailure": failed, "precompact": compacting, "postcompact": compacted,
	"afteragentresponse": replied, "stop": stopped,
}

// Event is something that happened in a host's session.
type Event struct {
	host, name string
	kind       kind
	// Session is the host's session, Project the folder that it works in, if it says so.
	Session, Project string

	source     string // of a start: why
	tool       string
	arguments  json.RawMessage
	result     json.RawMessage
	problem    string // of a failed tool
	said       string // by the person, or by the model
	turn, call string
	once       string // distinguishes events that have no id; empty where the host has none
}

// input are the fields of all hosts.
type input struct {
	SessionID      words `json:"session_id"`
	SessionIDCamel words `json:"sessionId"`
	ConversationID words `json:"conversation_id"`
	CWD            words `json:"cwd"`
	Roots          roots `json:"workspace_roots"`
	Source         words `json:"source"`

	ToolName     words           `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolResponse json.RawMessage `json:"tool_response"`
	ToolOutput   json.RawMessage `json:"tool_output"`
	ToolUseID    words           `json:"tool_use_id"`
	Error        words           `json:"error"`
	ErrorMessage words           `json:"error_message"`

	Prompt words `json:"prompt"`
	Reply  words `json:"last_assistant_message"`
	Text   words `json:"text"`

	TurnID       words `json:"turn_id"`
	PromptID     words `json:"prompt_id"`
	GenerationID words `json:"generation_id"`
	Timestamp    words `json:"timestamp"`
}

// Parse reads what a host wrote to a hook.
func Parse(host, event string, text []byte) (Event, error) {
	if !knownHost(host) {
		return Event{}, fmt.Errorf("%w host %q; there are claude-code, codex, cursor, vscode", ErrUnknown, host)
	}
	k, ok := kinds[strings.ToLower(event)]
	if !ok {
		return Event{}, fmt.Errorf("%w event %q", ErrUnknown, event)
	}
	if len(text) > MaxInputBytes {
		return Event{}, fmt.Errorf("%w: more than %d bytes", ErrInput, MaxInputBytes)
	}
	var in input
	if err := json.Unmarshal(utf8Text(text), &in); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrInput, err)
	}
	e := Event{
		host: host, name: event, kind: k, Project: string(in.CWD), source: string(in.Source),
		Session: short(string(cmp.Or(in.ConversationID, in.SessionID, in.SessionIDCamel)), maxSessionBytes),
		once:    string(in.Timestamp),
		turn:    short(string(cmp.Or(in.TurnID, in.PromptID, in.GenerationID)), maxIDBytes), call: short(string(in.ToolUseID), maxIDBytes),
	}
	if e.Session == "" {
		return Event{}, fmt.Errorf("%w: it does not say which session it is", ErrInput)
	}
	if len(in.Roots) > 0 {
		e.Project = in.Roots[0]
	}
	switch k {
	case called, failed:
		return e.tooled(in)
	case prompted:
		e.said = cut(string(in.Prompt), maxSaidBytes)
	case replied:
		e.said = cut(string(in.Text), maxSaidBytes)
	case stopped:
		e.said = cut(string(in.Reply), maxSaidBytes)
	}
	return e, nil
}

func knownHost(host string) bool {
	switch host {
	case "claude-code", "codex", "cursor", "vscode":
		return true
	}
	return false
}

// tooled adds what a tool was given and gave.
func (e Event) tooled(in input) (Event, error) {
	if in.ToolName == "" {
		return Event{}, fmt.Errorf("%w: it does not say which tool it was", ErrInput)
	}
	e.tool, e.arguments, e.result = ToolName(string(in.ToolName)), Arguments(in.ToolInput), asResult(in.ToolResponse)
	if len(in.ToolOutput) > 0 {
		e.result = asResult(in.ToolOutput)
	}
	if e.kind == failed {
		e.problem = string(cmp.Or(in.Error, in.ErrorMessage, "it failed and did not say why"))
		if said, printed, _ := strings.Cut(e.problem, "\n"); len(e.result) == 0 && printed != "" {
			// Below how a command ended stands what it printed.
			e.problem, e.result = said, textResult(printed)
		}
	}
	return e, nil
}

// ToolName is the name of a host's tool as the native API takes it. Those that mean
// tools of the server there get a word in front.
func ToolName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_:./-", r) {
			return r
		}
		return '_'
	}, name)
	switch clean {
	case "read_file", "write_file", "list_dir":
		clean = "host:" + clean
	}
	return cut(clean, maxToolBytes)
}

// own reports whether a tool is one of this server, which has recorded the call already.
func (e Event) own() bool {
	lower := strings.ToLower(e.tool)
	for _, prefix := range []string{"mcp__loom-bridge__", "mcp_loom-bridge_", "mcp__loom_bridge__", "mcp_loom_bridge_", "loom-bridge:", "mcp:loom-bridge"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return false
}

// Arguments are what a tool was given, in JSON, as the native API takes them.
func Arguments(given json.RawMessage) json.RawMessage { return shortened(asObject(given)) }

// asObject is what a tool was given as an object. Some hosts write it as a text.
func asObject(given json.RawMessage) json.RawMessage {
	given = bytes.TrimSpace(given)
	var text string
	if json.Unmarshal(given, &text) == nil && text != "" {
		if inner := bytes.TrimSpace([]byte(text)); len(inner) > 0 && inner[0] == '{' && json.Valid(inner) {
			return inner
		}
	}
	switch {
	case len(given) == 0 || string(given) == "null":
		return nil
	case given[0] == '{':
		return given
	}
	wrapped, _ := json.Marshal(map[string]json.RawMessage{"input": given}) //nolint:errchkjson // it was decoded from JSON
	return wrapped
}

// shortened is what a tool was given, with no more than the beginnings of long members where
// all of it is more than the native API takes, such as the content of a written file.
func shortened(object json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(object) <= maxArgumentsBytes || json.Unmarshal(object, &members) != nil {
		return object
	}
	for name, value := range members {
		if len(value) > maxMemberBytes {
			var w words
			_ = w.UnmarshalJSON(value)                                      // takes any JSON
			members[name], _ = json.Marshal(cut(string(w), maxMemberBytes)) //nolint:errchkjson // a string
		}
	}
	object, _ = json.Marshal(members) //nolint:errchkjson // it was decoded from JSON
	if len(object) <= maxArgumentsBytes {
		return object
	}
	whole, _ := json.Marshal(map[string]string{"input": cut(string(object), maxMemberBytes)}) //nolint:errchkjson // a string
	return whole
}

// short is an id of at most so many bytes: a longer one is replaced by its digest.
func short(id string, most int) string {
	if len(id) <= most {
		return strings.ReplaceAll(id, "\x00", "")
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// cut is the beginning of a text, without half a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Answer is what the host reads: nothing to do, or a text for the model.
func (e Event) Answer(text string) []byte {
	var answer any = struct{}{}
	switch {
	case text == "":
	case e.host == "cursor":
		answer = struct {
			Context string `json:"additional_context"`
		}{text}
	default:
		type specific struct {
			Event   string `json:"hookEventName"`
			Context string `json:"additionalContext"`
		}
		answer = struct {
			Specific specific `json:"hookSpecificOutput"`
		}{specific{e.name, text}}
	}
	out, _ := json.Marshal(answer) //nolint:errchkjson // strings
	return append(out, '\n')
}

// carries reports whether the answer to an event may hold a text for the model.
func (e Event) carries() bool {
	switch e.kind {
	case started, called:
		return true
	case prompted:
		return e.host == "claude-code" || e.host == "codex"
	case failed:
		return e.host == "claude-code"
	}
	return false
}
