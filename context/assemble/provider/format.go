package provider

import (
	"encoding/json"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// Format is the shape of a prompt.
type Format uint8

// The formats.
const (
	// Neutral has messages as they were recorded. Tools keep their own names; in all
	// other formats, characters that providers do not take, such as the colon, become
	// underscores.
	Neutral Format = iota
	// OpenAIChat is {tools, messages} of Chat Completions.
	OpenAIChat
	// OpenAIResponses is {tools, instructions, input} of Responses.
	OpenAIResponses
	// Anthropic is {tools, system, messages} of the Messages API, with cache marks.
	Anthropic
	// Gemini is {tools, systemInstruction, contents} of generateContent.
	Gemini
)

// Formats is how many there are.
const Formats = int(Gemini) + 1

// String returns the format's name.
func (f Format) String() string {
	names := [Formats]string{"neutral", "openai_chat", "openai_responses", "anthropic", "gemini"}
	if int(f) >= len(names) {
		return "unknown"
	}
	return names[f]
}

// MaxToolName is how long the names of tools are that a provider takes.
func (f Format) MaxToolName() int {
	if f == Anthropic {
		return 128
	}
	return 64
}

// ToolName is what prompts of the format call a tool, and whether they can: providers
// take no long names, and Gemini none that begin with a digit or a hyphen.
func (f Format) ToolName(name string) (called string, taken bool) {
	if f == Neutral {
		return name, true
	}
	called = f.name(name)
	return called, name != "" && len(name) <= f.MaxToolName() && (f != Gemini || begins(name))
}

// begins reports whether a name begins as Gemini wants it.
func begins(name string) bool {
	return name != "" && name[0] != '-' && (name[0] < '0' || name[0] > '9')
}

// name is a name as the provider takes it: what it does not take becomes an
// underscore, and a long name is cut.
func (f Format) name(name string) string {
	clean := strings.Map(plain, name)
	if f == Gemini && !begins(clean) {
		clean = "_" + clean
	}
	return clean[:min(len(clean), f.MaxToolName())]
}

// plain is a character that names may have, or an underscore.
func plain(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		return r
	}
	return '_'
}

// The further fields that a message of the model, and a call of it, may have in Chat: those of
// OpenAI, and those that hosts want back which speak Chat. All others, of a log of a host or of
// another provider, are refused by strict ones, and stay away; messages of other roles have none.
var (
	chatFields = map[string]bool{
		"refusal": true, "audio": true, "function_call": true, // OpenAI
		"reasoning_content": true,                            // DeepSeek, Kimi, Qwen
		"reasoning":         true, "reasoning_details": true, // OpenRouter
		"thinking":      true,                  // Ollama
		"extra_content": true,                  // Gemini: signatures
		"prefix":        true, "partial": true, // Mistral and DeepSeek, Kimi: to be gone on with
	}
	chatCallFields = map[string]bool{"type": true, "extra_content": true}
)

// Renamed returns a message with the names of the format, and the fields that it has.
func (f Format) Renamed(m session.Message) session.Message {
	if f == Neutral {
		return m
	}
	if f == OpenAIChat && len(m.ExtraJSON) > 0 {
		if m.Role != session.Assistant {
			m.ExtraJSON = nil
		}
		m.ExtraJSON = content.Only(m.ExtraJSON, chatFields)
	}
	if m.Name != "" {
		m.Name = f.name(m.Name)
	}
	calls := make([]session.ToolCall, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		c.Name = f.name(c.Name)
		if f == OpenAIChat && c.Extra != "" {
			c.Extra = string(content.Only(json.RawMessage(c.Extra), chatCallFields))
		}
		calls[i] = c
	}
	m.ToolCalls = calls
	return m
}
