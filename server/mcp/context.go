package mcp

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// defaultReadBytes is what blob_read gives by default: some 4,000
	// tokens.
	defaultReadBytes = 16 << 10
	// maxReadBytes is the most it gives, and the longest blob that is a resource.
	maxReadBytes = 1 << 20
)

// toolBlobRead gives back what was put aside.
const toolBlobRead = "blob_read"

const sessionProperty = `"session":{"type":"string","description":"default: this connection's"}`

func contextTools() []tool {
	return []tool{
		{
			name: "step_record",
			description: "Record a tool call that you made yourself. Long results are put aside whole; " +
				"the answer is one line and the name to read the rest by.",
			properties: `"tool":{"type":"string"},"arguments":{"type":"object"},"result":{"description":"text or JSON"},` +
				`"error":{"type":"string","description":"if it failed"},"thought":{"type":"string"},` + sessionProperty,
			required: []string{"tool"}, call: taking(recordStep), arguments: stepArguments{},
		},
		{
			name:        "context_assemble",
			description: "The session so far as one text within a token budget, to hand over to another agent or to go on after a compaction.",
			properties: `"goal":{"type":"string","description":"what is to be done next"},` +
				`"max_tokens":{"type":"integer","description":"default 8192"},` + sessionProperty,
			reads: true, call: taking(assembleContext), arguments: assembleArguments{},
		},
		{
			name:        toolBlobRead,
			description: "Read back what was put aside, byte for byte, by the name that a step gave (such as step_012), or find lines in it.",
			properties: `"name":{"type":"string"},"offset":{"type":"integer","description":"first byte"},` +
				`"limit":{"type":"integer","description":"bytes, default 16384"},` +
				`"find":{"type":"string","description":"give the lines with this text instead, at most 100"},` +
				`"regexp":{"type":"boolean","description":"find is an RE2 expression"},` + sessionProperty,
			required: []string{"name"}, reads: true, call: taking(readBlob), arguments: readArguments{},
		},
	}
}

type stepArguments struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     string          `json:"error"`
	Thought   string          `json:"thought"`
	Session   string          `json:"session"`
}

func recordStep(c toolCall, a stepArguments) (any, error) {
	request := &loombridgev1.RecordStepRequest{
		AgentId: c.agent, SessionId: cmp.Or(a.Session, c.session), ToolName: a.Tool, Thought: a.Thought,
		Success: a.Error == "", ErrorMessage: a.Error,
	}
	if len(a.Arguments) > 0 {
		request.ArgumentsForm = &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: string(a.Arguments)}
	}
	var text string
	switch {
	case len(a.Result) == 0:
	case json.Unmarshal(a.Result, &text) == nil:
		request.OutputForm = &loombridgev1.RecordStepRequest_OutputText{OutputText: text}
	default:
		request.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(a.Result)}
	}
	recorded, err := c.s.sessions.RecordStep(c.ctx, request)
	if err != nil {
		return nil, err
	}
	return stepLine{Step: recorded.GetStep().GetId(), Observation: forHosts(recorded.GetObservation()), Blob: recorded.GetOutputBlob().GetPath()}, nil
}

// stepLine is what is left of a call in the prompt.
type stepLine struct {
	Step        string `json:"step"`
	Observation string `json:"observation"`
	Blob        string `json:"blob,omitempty"`
}

type assembleArguments struct {
	Goal      string `json:"goal"`
	MaxTokens int32  `json:"max_tokens"`
	Session   string `json:"session"`
}

func assembleContext(c toolCall, a assembleArguments) (any, error) {
	return c.s.handover(c.caller, a)
}

// defaultHandoverTokens is the budget of a hand-over by default.
const defaultHandoverTokens = 8192

// handover is the caller's session, or the one that it names, as one text.
func (s *Server) handover(who caller, a assembleArguments) (string, error) {
	text, err := Handover(who.ctx, s.prompts, s.sessions, &loombridgev1.AssembleRequest{
		AgentId: who.agent, SessionId: cmp.Or(a.Session, who.session), Goal: a.Goal, MaxTokens: cmp.Or(a.MaxTokens, defaultHandoverTokens),
	})
	if err == nil && text == "" {
		text = "Nothing is recorded in this session."
	}
	return text, err
}

// writeMessage writes one message of a prompt for a reader that does not get its form:
// role, calls and text.
func writeMessage(text *strings.Builder, m *loombridgev1.Message) {
	content := cmp.Or(m.GetContent(), m.GetBlocksJson())
	if content == "" && len(m.GetToolCalls()) == 0 {
		return
	}
	if text.Len() > 0 {
		text.WriteString("\n\n")
	}
	text.WriteString("[" + strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_")) + "]")
	for _, called := range m.GetToolCalls() {
		text.WriteString(" " + called.GetName() + called.GetArgumentsJson())
	}
	if content != "" {
		text.WriteString("\n" + content)
	}
}

type readArguments struct {
	Name    string `json:"name"`
	Offset  int64  `json:"offset"`
	Limit   int64  `json:"limit"`
	Find    string `json:"find"`
	Regexp  bool   `json:"regexp"`
	Session string `json:"session"`
}

// readPart is a part of a blob as models read it.
type readPart struct {
	Text   string `json:"text,omitempty"`
	Base64 string `json:"base64,omitempty"`
	Size   int64  `json:"size"`
	// Next is the offset of the part behind this one; none behind the last.
	Next int64 `json:"next,omitempty"`
}

func readBlob(c toolCall, a readArguments) (any, error) {
	if a.Limit > maxReadBytes {
		return nil, badArgument("limit", "is at most 1048576 bytes")
	}
	if a.Find != "" {
		return findInBlob(c, a)
	}
	info, data, err := c.s.blob(c.caller, &loombridgev1.ReadBlobRequest{
		Name: a.Name, Offset: a.Offset, Limit: cmp.Or(a.Limit, defaultReadBytes), SessionId: cmp.Or(a.Session, c.session),
	})
	if err != nil {
		return nil, err
	}
	whole := wholeRunes(data, a.Offset+int64(len(data)) >= info.GetSize())
	part := readPart{Size: info.GetSize()}
	if utf8.Valid(whole) {
		data = whole
		part.Text = string(data)
	} else {
		part.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	if end := a.Offset + int64(len(data)); end < info.GetSize() {
		part.Next = end
	}
	return part, nil
}

// foundLines are lines of a blob.
type foundLines struct {
	Lines []foundLine `json:"lines"`
	Size  int64       `json:"size"`
	// More says that the blob was not searched to its end.
	More bool `json:"more,omitempty"`
}

type foundLine struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}

func findInBlob(c toolCall, a readArguments) (any, error) {
	if a.Offset != 0 || a.Limit != 0 {
		return nil, badArgument("find", "searches the whole; leave offset and limit out")
	}
	request := &loombridgev1.SearchBlobsRequest{
		AgentId: c.agent, Name: a.Name, SessionId: cmp.Or(a.Session, c.session), Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: a.Find},
	}
	if a.Regexp {
		request.Pattern = &loombridgev1.SearchBlobsRequest_Regexp{Regexp: a.Find}
	}
	stream, err := c.s.blobs.SearchBlobs(c.ctx, request)
	if err != nil {
		return nil, err
	}
	found := foundLines{Lines: []foundLine{}}
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		found.Size = max(found.Size, piece.GetBlob().GetSize())
		for _, m := range piece.GetMatches() {
			found.Lines = append(found.Lines, foundLine{m.GetLine(), m.GetOffset(), m.GetText()})
		}
		found.More = piece.GetNextPageToken() != ""
	}
}

// wholeRunes leaves out a character that the end of a part cuts in two, unless the part
// is the last.
func wholeRunes(data []byte, last bool) []byte {
	if last {
		return data
	}
	for cut := 1; cut < utf8.UTFMax && cut < len(data); cut++ {
		if b := data[len(data)-cut]; utf8.RuneStart(b) {
			if !utf8.FullRune(data[len(data)-cut:]) {
				return data[:len(data)-cut]
			}
			break
		}
	}
	return data
}

// blob reads a part of a blob into memory; the request says at most how much.
func (s *Server) blob(who caller, request *loombridgev1.ReadBlobRequest) (*loombridgev1.BlobInfo, []byte, error) {
	request.AgentId = who.agent
	stream, err := s.blobs.ReadBlob(who.ctx, request)
	if err != nil {
		return nil, nil, err
	}
	var info *loombridgev1.BlobInfo
	var data []byte
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return info, data, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if piece.GetInfo() != nil {
			info = piece.GetInfo()
		}
		data = append(data, piece.GetData()...)
	}
}
