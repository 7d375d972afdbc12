package assemble

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits and defaults of a request.
const (
	// DefaultMaxTokens is the budget of a request that names none.
	DefaultMaxTokens = 8192
	// DefaultToolResultTokens bounds what a prompt shows of one result. What is
	// over it can be read by the reference that stands in its place.
	DefaultToolResultTokens = 3000
	// MaxGoalBytes bounds a goal.
	MaxGoalBytes = 256 << 10
	// MaxSystemBytes bounds a system prompt.
	MaxSystemBytes = 1 << 20
)

// Log is what the assembler reads: a session's entries in order, all of one
// moment. *session.Log is one.
type Log interface {
	Entries(ctx context.Context, scope kv.Scope, sessionID string) iter.Seq2[session.Entry, error]
}

// Format is the shape of a prompt.
type Format uint8

// The formats.
const (
	// Neutral fills Messages and ToolsJSON. Tools keep their own names.
	Neutral Format = iota
	// OpenAIChat fills OpenAIChatJSON. Characters that OpenAI does not take in
	// a name, such as the colon, become underscores.
	OpenAIChat
)

// Tool is a tool to offer.
type Tool struct {
	// Name is its registered name, such as "fs:read_file".
	Name string
	// Description says what it does.
	Description string
	// Schema is the JSON Schema of its arguments; nil means no arguments.
	Schema json.RawMessage
}

// Request asks for a prompt.
type Request struct {
	// Scope is whose session it is.
	Scope kv.Scope
	// SessionID is the session; empty is the default session.
	SessionID string
	// Goal is what the agent works towards; empty adds nothing.
	Goal string
	// Model is the model the prompt is for; it chooses the token counter. Empty
	// is tokens.DefaultModel.
	Model string
	// System is the system prompt; empty adds nothing.
	System string
	// MaxTokens is the budget of the whole prompt; zero is DefaultMaxTokens.
	MaxTokens int
	// MaxBytes bounds the text of all messages, however few tokens it has and
	// whatever the format adds; zero is no bound.
	MaxBytes int
	// Tools are offered in the order of their names.
	Tools []Tool
	// Format is the shape of the answer.
	Format Format
}

// Part is one part of a prompt.
type Part struct {
	// Name is "system", "tools", "history" or "goal".
	Name string
	// Tokens is its size.
	Tokens int
}

// Prompt is an assembled prompt. It belongs to the caller.
type Prompt struct {
	// Messages are the prompt in Neutral.
	Messages []session.Message
	// ToolsJSON is in Neutral a canonical JSON array of objects with
	// description, name and parameters.
	ToolsJSON []byte
	// OpenAIChatJSON is in OpenAIChat one JSON object with tools, unless there
	// are none, and messages.
	OpenAIChatJSON []byte
	// Tokens is the size of the whole: all parts and tokens.ReplyTokens.
	Tokens tokens.Count
	// Parts are system, tools, history and goal, in this order.
	Parts []Part
	// PrefixSHA256 is the hash, in hex, of everything before the goal: of the
	// bytes of OpenAIChatJSON up to there, and of the same layout with the
	// neutral names in Neutral.
	PrefixSHA256 string
}

// Options adjusts an Assembler. Nil and zero fields mean the defaults.
type Options struct {
	// ToolResultTokens bounds what a prompt shows of one step's result. Default
	// DefaultToolResultTokens.
	ToolResultTokens int
	// Reference is how a result says where its full text lies. Default
	// step.ReferenceHint.
	Reference step.ReferenceStyle
}

// Assembler builds prompts. It keeps no state: the same log and the same
// request give the same bytes. All methods are safe for concurrent use.
type Assembler struct {
	log       Log
	counter   *tokens.Counter
	limit     int
	reference step.ReferenceStyle
}

// New returns an assembler that reads log and counts with counter. Give many
// assemblers one counter: it remembers what it counted.
func New(log Log, counter *tokens.Counter, opts *Options) *Assembler {
	a := &Assembler{log: log, counter: counter, limit: DefaultToolResultTokens}
	if opts != nil {
		a.reference = opts.Reference
		if opts.ToolResultTokens > 0 {
			a.limit = opts.ToolResultTokens
		}
	}
	return a
}

// Assemble builds the prompt of a session. It writes nothing. A prompt over
// the budget is an *OverflowError, one over MaxBytes is ErrTooLarge, a malformed
// request an *InvalidError.
func (a *Assembler) Assemble(ctx context.Context, r Request) (Prompt, error) {
	if r.MaxTokens == 0 {
		r.MaxTokens = DefaultMaxTokens
	}
	if err := r.check(); err != nil {
		return Prompt{}, err
	}
	b, err := newBuilder(a.counter, r)
	if err != nil {
		return Prompt{}, err
	}
	if r.System != "" {
		if err := b.add(partSystem, item{partSystem, session.Message{Role: session.System, Content: r.System}}); err != nil {
			return Prompt{}, err
		}
	}
	if err := a.addHistory(ctx, b, r); err != nil {
		return Prompt{}, err
	}
	return b.finish(r.Goal)
}

func (a *Assembler) addHistory(ctx context.Context, b *builder, r Request) error {
	result := func(s step.Step) (string, error) { return a.resultText(r.Model, s) }
	for it, err := range items(a.log.Entries(ctx, r.Scope, r.SessionID), result) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("assemble: read history: %w", err)
		}
		if err := b.add(partHistory, it); err != nil {
			return err
		}
	}
	return nil
}

// check returns an *InvalidError for a malformed request.
func (r Request) check() error {
	switch {
	case r.MaxTokens < 0:
		return &InvalidError{"max_tokens", "must be positive"}
	case len(r.Goal) > MaxGoalBytes:
		return &InvalidError{"goal", fmt.Sprintf("is %d bytes, over the limit of %d", len(r.Goal), MaxGoalBytes)}
	case len(r.System) > MaxSystemBytes:
		return &InvalidError{"system", fmt.Sprintf("is %d bytes, over the limit of %d", len(r.System), MaxSystemBytes)}
	case !utf8.ValidString(r.Goal):
		return &InvalidError{"goal", "is not UTF-8"}
	case !utf8.ValidString(r.System):
		return &InvalidError{"system", "is not UTF-8"}
	case r.Format > OpenAIChat:
		return &InvalidError{"format", "is unknown"}
	}
	return nil
}
