package record

import (
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// Part is one part of a prompt.
type Part struct {
	// Name is that of a section.
	Name string
	// Tokens is its size.
	Tokens int
}

// Prompt is an assembled prompt. It belongs to the caller.
type Prompt struct {
	// Messages are the prompt in provider.Neutral.
	Messages []session.Message
	// ToolsJSON is in provider.Neutral a canonical JSON array of objects with
	// description, name and parameters. Prompts share it: it is for reading only.
	ToolsJSON []byte
	// OpenAIChatJSON is in OpenAIChat one JSON object with tools, unless there
	// are none, and messages.
	OpenAIChatJSON []byte
	// Body is in the other formats one JSON object, the part of a request that is the
	// prompt.
	Body []byte
	// Marks are where the provider's cache should keep the prompt, in order. Body has them
	// where its format has a place for them.
	Marks []provider.Mark
	// Tokens is the size of the whole: all parts and tokens.ReplyTokens, or, where
	// usage was reported, what the provider is expected to count.
	Tokens tokens.Count
	// Parts are the sections of the prompt, in its order, among them always system,
	// tools, history and goal.
	Parts []Part
	// PrefixSHA256 is the hash, in hex, of everything before the goal: of the
	// bytes of OpenAIChatJSON up to there, and of the same layout with the
	// neutral names in provider.Neutral.
	PrefixSHA256 string
	// Receipt is the account of it.
	Receipt Receipt
}

// promptOf returns the written prompt without a receipt.
func promptOf(w *render.Written) Prompt {
	p := Prompt{
		Messages: w.Messages, ToolsJSON: w.ToolsJSON, OpenAIChatJSON: w.ChatJSON, Body: w.Body,
		Marks: w.Marks, Tokens: w.Tokens, PrefixSHA256: w.Prefix,
	}
	for _, s := range w.Parts {
		p.Parts = append(p.Parts, Part{Name: s.Section, Tokens: s.Tokens})
	}
	return p
}

// Size is about what the prompt takes in memory.
func (p *Prompt) Size() int {
	const fixed, perMessage = 4096, 256
	n := fixed + len(p.ToolsJSON) + len(p.OpenAIChatJSON) + len(p.Body) + perMessage*(len(p.Messages)+len(p.Receipt.Sections)+len(p.Receipt.Tools))
	for i := range p.Messages {
		n += len(p.Messages[i].Content) + len(p.Messages[i].BlocksJSON)
	}
	for i := range p.Receipt.Folds {
		n += perMessage + len(p.Receipt.Folds[i].Text)
	}
	return n
}
