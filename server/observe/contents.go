package observe

import (
	"encoding/json"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/memory/redact"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

const (
	genAIArguments    = attribute.Key("gen_ai.tool.call.arguments")
	genAIResult       = attribute.Key("gen_ai.tool.call.result")
	genAIQuery        = attribute.Key("gen_ai.memory.query.text")
	genAIRecords      = attribute.Key("gen_ai.memory.records")
	genAIInstructions = attribute.Key("gen_ai.system_instructions")
	genAIMessages     = attribute.Key("gen_ai.input.messages")
	// messagesUnshown counts the messages of a prompt that are older than those that a span has
	// room for.
	messagesUnshown = attribute.Key("loom_bridge.prompt.messages_not_shown")
	promptJSON      = attribute.Key("loom_bridge.prompt.json")
)

// Bounds of what a span says: collectors take 4 MiB at once, of many spans.
const (
	maxSaidText = 4 << 10
	maxSaid     = 32 << 10
	frame       = 64 // what stands around a text: its kind, an id
)

// Contents adds to spans what was said, saved, asked and returned: in the attributes that
// OpenTelemetry's conventions have for it, with marks in place of secrets, each text of at most
// 4 KiB and all of a span's of at most 32 KiB. It is safe for concurrent use.
type Contents struct{ by *redact.Redactor }

// NewContents makes Contents that redact by the built-in patterns of secrets, and by those of
// the server if it has some.
func NewContents(by *redact.Redactor) *Contents { return &Contents{by} }

// said are the texts of one span, as far as there is room.
type said struct {
	*described
	by   *redact.Redactor
	room int
}

// of adds what a call's request and answer say. A nil Contents adds nothing.
func (c *Contents) of(d *described, request, answer any) {
	if c == nil {
		return
	}
	s := &said{d, c.by, maxSaid}
	s.asked(request)
	s.answered(answer)
}

// text is what a span shows of a text. What is cut may hold the beginning of a secret, so it is
// redacted first.
func (s *said) text(whole string) string {
	const context = 2 * redact.MaxSecretBytes // all of a secret that begins in what is shown
	if len(whole) > maxSaidText+context {
		whole = validate.Cut(whole, maxSaidText+context)
	}
	shown := validate.Cut(s.by.Text(redact.Eager().Text(whole, nil), nil), min(maxSaidText, max(s.room, 0)))
	if quoted, err := json.Marshal(shown); err == nil {
		s.room -= len(quoted) + frame
	}
	return shown
}

func (s *said) put(key attribute.Key, whole string) {
	if whole != "" && s.room > 0 {
		s.add(key.String(s.text(whole)))
	}
}

// list puts a list of what the conventions give a form of their own.
func (s *said) list(key attribute.Key, values any) {
	if text, err := json.Marshal(values); err == nil {
		s.add(key.String(string(text)))
	}
}

// saidRecord is a record as the conventions write it.
type saidRecord struct {
	ID      string  `json:"id,omitempty"`
	Content string  `json:"content"`
	Score   float64 `json:"score,omitempty"`
}

func (s *said) records(of []saidRecord) {
	for i := range of {
		if s.room <= 0 {
			of = of[:i]
			break
		}
		of[i].Content = s.text(of[i].Content)
	}
	if len(of) > 0 {
		s.list(genAIRecords, of)
	}
}

func (s *said) asked(request any) {
	switch r := request.(type) {
	case *loombridgev1.ToolRequest:
		s.put(genAIArguments, jsonOr(r.GetArgumentsJson(), r.GetArguments()))
	case *loomv1pb.ToolCall:
		s.put(genAIArguments, r.GetArguments())
	case *loombridgev1.MemorySaveRequest:
		s.records([]saidRecord{{Content: r.GetText()}})
	case *loombridgev1.BatchSaveRequest:
		all := make([]saidRecord, len(r.GetRecords()))
		for i, one := range r.GetRecords() {
			all[i].Content = one.GetText()
		}
		s.records(all)
	case *loombridgev1.UpdateRecordRequest:
		s.records([]saidRecord{{ID: r.GetId(), Content: r.GetRecord().GetText()}})
	case *loombridgev1.MemoryQueryRequest:
		s.put(genAIQuery, r.GetQuery())
	case *loombridgev1.SpawnAgentRequest:
		s.messages([]*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: r.GetGoal()}})
	}
}

func (s *said) answered(answer any) {
	switch a := answer.(type) {
	case *loombridgev1.ToolResponse:
		s.put(genAIResult, jsonOr(a.GetOutputJson(), a.GetOutput()))
		s.put(genAIResult, a.GetErrorMessage())
	case *loomv1pb.ToolResult:
		s.put(genAIResult, a.GetOutput())
		s.put(genAIResult, a.GetError().GetMessage())
	case *loombridgev1.MemoryQueryResponse:
		all := make([]saidRecord, len(a.GetHits()))
		for i, hit := range a.GetHits() {
			all[i] = saidRecord{hit.GetRecord().GetId(), hit.GetRecord().GetText(), hit.GetScore()}
			for _, passage := range hit.GetPassages() {
				all[i].Content += passage.GetText()
			}
		}
		s.records(all)
	case *loombridgev1.AssembleResponse:
		s.put(promptJSON, a.GetPromptJson())
		s.messages(a.GetMessages())
	}
}

// saidPart is a part of a message as the conventions write it.
type saidPart struct {
	Type      string `json:"type"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Content   string `json:"content,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

type saidMessage struct {
	Role  string     `json:"role"`
	Parts []saidPart `json:"parts"`
}

var saidRoles = map[loombridgev1.Role]string{
	loombridgev1.Role_ROLE_SYSTEM: "system", loombridgev1.Role_ROLE_USER: "user", loombridgev1.Role_ROLE_ASSISTANT: "assistant", loombridgev1.Role_ROLE_TOOL: "tool",
	loombridgev1.Role_ROLE_DEVELOPER: "system",
}

// messages puts a prompt: what it instructs, and of all else the newest.
func (s *said) messages(all []*loombridgev1.Message) {
	var instructions []saidPart
	for len(all) > 0 && saidRoles[all[0].GetRole()] == "system" {
		instructions = append(instructions, saidPart{Type: "text", Content: s.text(all[0].GetContent())})
		all = all[1:]
	}
	if len(instructions) > 0 {
		s.list(genAIInstructions, instructions)
	}
	var shown []saidMessage
	for _, m := range slices.Backward(all) {
		if s.room <= 0 {
			break
		}
		shown = append(shown, saidMessage{saidRoles[m.GetRole()], s.parts(m)})
	}
	if unshown := len(all) - len(shown); unshown > 0 {
		s.add(messagesUnshown.Int(unshown))
	}
	if slices.Reverse(shown); len(shown) > 0 {
		s.list(genAIMessages, shown)
	}
}

func (s *said) parts(m *loombridgev1.Message) []saidPart {
	content := m.GetContent() + m.GetBlocksJson() // a message has one of them
	if m.GetRole() == loombridgev1.Role_ROLE_TOOL {
		return []saidPart{{Type: "tool_call_response", ID: validate.Printable(m.GetToolCallId()), Response: s.text(content)}}
	}
	var parts []saidPart
	if content != "" || len(m.GetToolCalls()) == 0 {
		parts = append(parts, saidPart{Type: "text", Content: s.text(content)})
	}
	for _, call := range m.GetToolCalls() {
		parts = append(parts, saidPart{Type: "tool_call", ID: validate.Printable(call.GetId()), Name: validate.Printable(call.GetName()), Arguments: s.text(call.GetArgumentsJson())})
	}
	return parts
}

// jsonOr is JSON that came as text, or else that of a message.
func jsonOr(text string, m proto.Message) string {
	if text != "" || !m.ProtoReflect().IsValid() {
		return text
	}
	made, err := protojson.Marshal(m)
	if err != nil {
		return ""
	}
	return string(made)
}
