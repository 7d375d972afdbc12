package assemble

import (
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/assemble/frame"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Format is the shape of a prompt.
type Format = provider.Format

// The formats.
const (
	// Neutral fills Messages and ToolsJSON. Tools keep their own names.
	Neutral = provider.Neutral
	// OpenAIChat fills OpenAIChatJSON.
	OpenAIChat = provider.OpenAIChat
)

// Request asks for a prompt.
type Request struct {
	// Scope is whose session it is.
	Scope kv.Scope
	// SessionID is the session; empty is the default session.
	SessionID string
	// Goal is what the agent works towards; empty adds nothing.
	Goal string
	// Model is the model the prompt is for; it chooses the token counter. Empty
	// is the session's, and without that tokens.DefaultModel.
	Model string
	// System is the system prompt; empty adds nothing.
	System string
	// MaxTokens is the budget of the whole prompt; zero is the session's, without
	// that what the preset leaves to a prompt, without that the model's window
	// without its reserve, and DefaultMaxTokens for a model whose window is not known.
	MaxTokens int
	// MaxBytes bounds the text of all messages, however few tokens it has and
	// whatever the format adds; zero is no bound.
	MaxBytes int
	// Tools are the caller's own tools, offered in addition to the served ones. All are
	// ordered by name.
	Tools []Tool
	// WithoutTools offers none, also none of the caller's.
	WithoutTools bool
	// Settings override the session's settings for this prompt; nil: the session's apply.
	Settings *settings.Prompt
	// TurnID names the turn of the model that the prompt is for. Default: the place of
	// the newest message of the user.
	TurnID string
	// Format is the shape of the answer.
	Format Format
	// DryRun stores nothing: the prompt is the one that would be made, and what
	// would be folded is folded in it.
	DryRun bool
	// History overrides the session's history settings for this call.
	History session.Config
}

// check returns an *invalid.Error for a malformed request.
func (r Request) check() error {
	switch {
	case r.MaxTokens < 0:
		return invalid.Field(ErrInvalid, "max_tokens", "must be positive")
	case len(r.Goal) > MaxGoalBytes:
		return invalid.Field(ErrInvalid, "goal", "is %d bytes, over the limit of %d", len(r.Goal), MaxGoalBytes)
	case len(r.System) > MaxSystemBytes:
		return invalid.Field(ErrInvalid, "system", "is %d bytes, over the limit of %d", len(r.System), MaxSystemBytes)
	case !utf8.ValidString(r.Goal):
		return invalid.Field(ErrInvalid, "goal", "is not UTF-8")
	case !utf8.ValidString(r.System):
		return invalid.Field(ErrInvalid, "system", "is not UTF-8")
	case r.Settings != nil && r.Settings.Check("settings") != nil:
		return r.Settings.Check("settings")
	case int(r.Format) >= provider.Formats:
		return invalid.Field(ErrInvalid, "format", "is unknown")
	}
	return r.checkTools()
}

// checkTools checks the caller's own tools but for their schemas, which are read where they
// are new.
func (r Request) checkTools() error {
	owner := make(map[string]int, len(r.Tools))
	for i := range r.Tools {
		tool := &r.Tools[i]
		called, taken := r.Format.ToolName(tool.Name)
		other, known := owner[called]
		switch {
		case !settings.IsToolName(tool.Name):
			return frame.BadTool(i, "name", "must be 1 to %d letters, digits or _ : . - /", settings.MaxToolNameBytes)
		case !taken:
			return frame.BadTool(i, "name", "is %q, which %s does not take: at most %d bytes, and no digit or hyphen first for Gemini", tool.Name, r.Format, r.Format.MaxToolName())
		case known:
			return frame.BadTool(i, "name", "is %q, and so is that of tools[%d] for %s", called, other, r.Format)
		case !utf8.ValidString(tool.Description):
			return frame.BadTool(i, "description", "is not UTF-8")
		}
		owner[called] = i
	}
	return nil
}

// job is what the prompt is written for.
func (t *task) job() render.Job {
	r := &t.r
	return render.Job{Format: r.Format, Model: r.Model, System: r.System, Goal: t.frame.Goal, MaxTokens: r.MaxTokens, MaxBytes: r.MaxBytes}
}

// What package frame makes of tools.
type (
	// Tool is a tool to offer.
	Tool = frame.Tool
	// Served is a tool that the server runs, or an attached agent.
	Served = frame.Served
)

// What package record makes of a prompt.
type (
	// Prompt is an assembled prompt.
	Prompt = record.Prompt
	// Part is one part of a prompt.
	Part = record.Part
	// Receipt is the account of a prompt.
	Receipt = record.Receipt
	// Section is the account of one section.
	Section = record.Section
	// Partitions are the tokens of a prompt by what they are part of.
	Partitions = record.Partitions
	// UsageReport is what a provider counted for a prompt.
	UsageReport = record.UsageReport
	// UsageLearned is what a report taught.
	UsageLearned = record.UsageLearned
	// PastRequest names a prompt that a session has sent.
	PastRequest = record.PastRequest
	// Diff is how two prompts of a session differ.
	Diff = record.Diff
	// Found is where a text stood in the prompts of a session.
	Found = record.Found
)
