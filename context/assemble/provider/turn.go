package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// turn is a message, read.
type turn struct {
	role   session.Role // System, Developer, User or Assistant
	pieces []piece
}

func (t *turn) instructs() bool { return t.role == session.System || t.role == session.Developer }

// piece is a part of a turn, and where it stood in the prompt.
type piece struct {
	content.Block
	at BlockPlace
	// renamed says that the id is not that of Raw.
	renamed bool
	// custom says that the call of a result was a custom_tool_call, native that it
	// had an id of Gemini.
	custom, native bool
}

// read takes the messages of a prompt apart.
func read(f Format, messages []session.Message) []turn {
	turns := make([]turn, len(messages))
	for i := range messages {
		turns[i] = readMessage(f, messages[i], i)
	}
	return turns
}

func readMessage(f Format, m session.Message, index int) turn {
	t := turn{role: m.Role}
	parts := content.Parse(m.BlocksJSON)
	if len(m.BlocksJSON) == 0 && m.Content != "" {
		parts = []content.Block{{Kind: content.Text, Text: m.Content}}
	}
	switch m.Role {
	case session.Tool:
		t.role = session.User
		parts = []content.Block{{Kind: content.Result, ID: m.ToolCallID, Parts: parts, Failed: failed(m.ExtraJSON)}}
	case session.Assistant:
		parts = asked(f, m, parts)
	case session.User:
		parts = named(m.Name, parts)
	}
	if f != OpenAIResponses {
		parts = flat(parts)
	}
	for i := range parts {
		t.pieces = append(t.pieces, piece{Block: parts[i], at: BlockPlace{index, i}})
	}
	return t
}

// failed reports whether the further fields of a result say that the tool failed, as
// Anthropic's do.
func failed(extra json.RawMessage) bool {
	var f struct {
		IsError bool `json:"is_error"`
	}
	return len(extra) > 0 && json.Unmarshal(extra, &f) == nil && f.IsError
}

// asked are the parts of a message of the model, with the calls that stand next to
// its blocks. What it refused stands in its own field.
func asked(f Format, m session.Message, parts []content.Block) []content.Block {
	if len(m.ToolCalls) > 0 {
		parts = slices.DeleteFunc(parts, func(p content.Block) bool { return p.Kind == content.Call })
	}
	var extra struct {
		Refusal string `json:"refusal"`
	}
	if len(parts) == 0 && len(m.ExtraJSON) > 0 && json.Unmarshal(m.ExtraJSON, &extra) == nil && extra.Refusal != "" {
		parts = append(parts, content.Block{Kind: content.Refusal, Dialect: content.Chat, Text: extra.Refusal})
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, content.Block{
			Kind: content.Call, ID: c.ID, Name: f.name(c.Name), Arguments: c.Arguments, Signature: signature(c.Extra), Custom: c.Custom(),
		})
	}
	return parts
}

// signature is the thoughtSignature that Gemini puts into calls where it speaks
// OpenAI's Chat.
func signature(extra string) string {
	var f struct {
		ExtraContent struct {
			Google struct {
				ThoughtSignature string `json:"thought_signature"`
			} `json:"google"`
		} `json:"extra_content"`
	}
	if extra == "" || json.Unmarshal([]byte(extra), &f) != nil {
		return ""
	}
	return f.ExtraContent.Google.ThoughtSignature
}

// named are the parts of a speaker: where a provider has no field for the name, it
// stands before the text.
func named(name string, parts []content.Block) []content.Block {
	if name == "" || len(parts) == 0 {
		return parts
	}
	who := OpenAIChat.name(name) + ":"
	if parts[0].Kind == content.Text {
		parts[0] = content.Block{Kind: content.Text, Text: who + " " + parts[0].Text}
		return parts
	}
	return slices.Insert(parts, 0, content.Block{Kind: content.Text, Text: who})
}

// flat are parts with the content of messages in their place.
func flat(parts []content.Block) []content.Block {
	if !slices.ContainsFunc(parts, func(p content.Block) bool { return p.Kind == content.Said }) {
		return parts
	}
	var out []content.Block
	for i := range parts {
		if parts[i].Kind == content.Said {
			out = append(out, flat(parts[i].Parts)...)
		} else {
			out = append(out, parts[i])
		}
	}
	return out
}

// Blocks is how many content blocks a message is in Anthropic's JSON, where its
// look-back counts them.
func Blocks(m session.Message) int {
	if len(m.BlocksJSON) == 0 {
		return plainBlocks(m)
	}
	t, n := readMessage(Anthropic, m, 0), 0
	for i := range t.pieces {
		if anthropicBlock(&t.pieces[i], t.role) != nil {
			n++
		}
	}
	return n
}

// plainBlocks is Blocks for a message that has no content blocks.
func plainBlocks(m session.Message) int {
	switch {
	case m.Role == session.Tool:
		return 1
	case blank(m.Content):
		return len(m.ToolCalls)
	}
	return len(m.ToolCalls) + 1
}

// blank reports whether a text says nothing: providers refuse those.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
