package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// MaxLineBytes bounds one run in a file.
const MaxLineBytes = 256 << 20

// ErrFormat: a file does not hold runs.
var ErrFormat = errors.New("replay: not a recorded run")

// Run is one recorded run. Entry i stands for message i.
type Run struct {
	// ID names the run.
	ID string
	// Messages are its messages, Entries what the policies see of them.
	Messages []Message
	Entries  []history.Entry
}

// Message is one recorded message, of any provider, in one form.
type Message struct {
	// Role is "system", "user", "assistant", "tool" or whatever was recorded.
	Role string
	// Text is what was said, or what a tool gave.
	Text string
	// Calls are the calls of an assistant message.
	Calls []history.Call
	// CallID is the call that a tool message answers.
	CallID string
	// Raw is the whole output of a tool where Text has a frame around it or is
	// cut; Exit its exit code.
	Raw  *string
	Exit *int
	// Failed says that the tool said it failed.
	Failed bool
}

// recorded is a run in a file, of whatever provider.
type recorded struct {
	ID       string            `json:"id"`
	System   json.RawMessage   `json:"system"`
	Messages []recordedMessage `json:"messages"`
}

type recordedMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []recordedCall  `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	RawOutput  *string         `json:"raw_output"`
	ReturnCode *int            `json:"returncode"`
}

type recordedCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// block is a content block, of Anthropic or OpenAI.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// Read reads runs, one JSON object a line: an object with messages as OpenAI
// or Anthropic write them. Bytes that are no such thing are an ErrFormat.
func Read(r io.Reader) ([]Run, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<20), MaxLineBytes)
	var runs []Run
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var rec recorded
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, n, err)
		}
		if len(rec.Messages) == 0 {
			return nil, fmt.Errorf("%w: line %d has no messages", ErrFormat, n)
		}
		runs = append(runs, rec.run(n))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("replay: read runs: %w", err)
	}
	return runs, nil
}

func (rec *recorded) run(n int) Run {
	run := Run{ID: rec.ID}
	if run.ID == "" {
		run.ID = "line " + strconv.Itoa(n)
	}
	if text := plainText(rec.System); text != "" {
		run.Messages = append(run.Messages, Message{Role: "system", Text: text})
	}
	for i := range rec.Messages {
		run.Messages = append(run.Messages, rec.Messages[i].messages()...)
	}
	run.Entries = entries(run.Messages)
	return run
}

// messages splits a message into those of one form: the results in a message
// of Anthropic's are messages of their own.
func (m *recordedMessage) messages() []Message {
	out := Message{Role: m.Role, CallID: m.ToolCallID, Raw: m.RawOutput, Exit: m.ReturnCode}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, history.Call{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
	}
	var blocks []block
	if json.Unmarshal(m.Content, &blocks) != nil {
		out.Text = plainText(m.Content)
		return []Message{out}
	}
	var results []Message
	for _, b := range blocks {
		switch b.Type {
		case "tool_use":
			out.Calls = append(out.Calls, history.Call{ID: b.ID, Name: b.Name, Args: string(b.Input)})
		case "tool_result":
			results = append(results, Message{Role: "tool", CallID: b.ToolUseID, Text: plainText(b.Content), Failed: b.IsError})
		default:
			out.Text = strings.TrimPrefix(out.Text+"\n"+b.Text, "\n")
		}
	}
	if out.Text == "" && len(out.Calls) == 0 && len(results) > 0 {
		return results
	}
	return append(results, out)
}

// plainText is the text of a JSON string, or of the blocks of an array.
func plainText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []block
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	texts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n")
}

// entries turns messages into what policies see. Where no message has native
// calls, a user message behind an assistant message with a fenced block is the
// observation of the action in it.
func entries(messages []Message) []history.Entry {
	native := false
	for _, m := range messages {
		native = native || len(m.Calls) > 0 || m.Role == "tool"
	}
	out := make([]history.Entry, len(messages))
	calls, acted := 0, false
	var asked []history.Call
	for i, m := range messages {
		e := history.Entry{Position: uint64(i + 1), Text: m.Text, Ref: "message " + strconv.Itoa(i+1)}
		e.Label = e.Ref + " (" + m.Role + ")"
		switch {
		case m.Role == "assistant":
			e.Kind, e.Calls, e.Ref = history.Turn, m.Calls, number(calls+1)
			calls += max(len(m.Calls), 1)
			asked = slices.Clone(m.Calls)
		case m.Role == "tool" || !native && acted && m.Role == "user":
			// The calls that are left end with the one numbered last.
			at := max(slices.IndexFunc(asked, func(c history.Call) bool { return c.ID == m.CallID }), 0)
			e.Kind, e.Ref = history.Result, number(calls-max(len(asked)-1-at, 0))
			m.answer(&e)
		}
		acted = m.Role == "assistant" && strings.Contains(m.Text, "```")
		out[i] = e
	}
	return out
}

// number is the reference of a call.
func number(call int) string { return fmt.Sprintf("%03d", call) }

// answer fills in what a tool gave.
func (m Message) answer(e *history.Entry) {
	e.Text, e.Output, e.CallID = "", m.Text, m.CallID
	e.Exit, e.Failed = m.Exit, m.Failed
	if m.Raw != nil {
		code := 0
		if m.Exit != nil {
			code = *m.Exit
		}
		e.Output = *m.Raw
		e.Shown = fmt.Sprintf("<returncode>%d</returncode>\n<output>\n%s</output>", code, *m.Raw)
	}
}
