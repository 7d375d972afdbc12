package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Believed reports whether a provider may have counted the anchored prompt so.
func Believed(a tokens.Anchor) bool {
	local, counted := float64(max(a.Local, 1)), float64(a.Real)
	return a.Real > 0 && counted >= minRatio*local && counted <= maxRatio*local+hiddenTokens
}

// UsageReport is what a provider counted for a prompt.
type UsageReport struct {
	// Scope is whose session it is.
	Scope kv.Scope
	// SessionID is the session; empty is the default session.
	SessionID string
	// PromptID is that of the prompt's receipt.
	PromptID string
	// Usage is the counted value; its Prompt is positive.
	Usage tokens.Usage
	// Cached is the part of the prompt that the provider read from its cache.
	Cached int
}

// UsageLearned is what a report taught.
type UsageLearned struct {
	// Counted is what the prompt had been said to take.
	Counted int
	// Ratio is the provider's token count divided by ours.
	Ratio float64
	// Missed is how many tokens should have come from the provider's cache and
	// did not.
	Missed int
}

// ReportUsage learns from what a provider counted: the session's next prompts
// are predicted from it, also after a restart. A second report for a prompt
// corrects the first. One that can't be of the prompt, because it is many times
// as large or small, teaches nothing. ErrPromptUnknown is for a prompt that is not one of the
// last of its session, or that a restart has forgotten; a malformed report is an
// *invalid.Error.
func (a *Recorder) ReportUsage(ctx context.Context, r UsageReport) (UsageLearned, error) {
	if err := r.check(); err != nil {
		return UsageLearned{}, err
	}
	session := sessionOf(r.SessionID)
	sent, ok := a.Known.report(r.Scope, session, r.PromptID, r.Usage)
	if !ok {
		return UsageLearned{}, fmt.Errorf("%w: %q", ErrPromptUnknown, r.PromptID)
	}
	if err := a.learn(ctx, r.Scope, session, sent, r.Usage); err != nil {
		return UsageLearned{}, err
	}
	ratio := float64(r.Usage.Prompt) / float64(max(sent.asked.Local.Tokens, 1))
	return UsageLearned{
		Counted: sent.predicted,
		Ratio:   ratio,
		Missed:  max(int(math.Round(float64(sent.stable)*ratio))-r.Cached, 0),
	}, nil
}

// learn makes reported usage the session's anchor, unless that is of a newer
// prompt. Only the first report of a prompt changes the agent's ratio.
func (a *Recorder) learn(ctx context.Context, scope kv.Scope, session string, sent sentPrompt, u tokens.Usage) error {
	anchor := sent.anchor(u)
	if !Believed(anchor) {
		return nil
	}
	if sent.usage == (tokens.Usage{}) {
		anchor = a.Known.Meter(scope).Report(sent.asked, sent.last, u)
	}
	if sent.outdated {
		return nil
	}
	if err := a.log.SaveAnchor(ctx, scope, session, anchor); err != nil {
		return fmt.Errorf("assemble: save anchor: %w", err)
	}
	return nil
}

// check returns an *invalid.Error for a malformed report.
func (r UsageReport) check() error {
	switch {
	case r.PromptID == "":
		return invalid.Field(ErrInvalid, "prompt_id", "is required")
	case r.Usage.Prompt <= 0:
		return invalid.Field(ErrInvalid, "prompt_tokens", "must be positive")
	case r.Usage.Completion < 0:
		return invalid.Field(ErrInvalid, "completion_tokens", "must not be negative")
	case r.Usage.Reasoning < 0:
		return invalid.Field(ErrInvalid, "reasoning_tokens", "must not be negative")
	case r.Cached < 0:
		return invalid.Field(ErrInvalid, "cached_tokens", "must not be negative")
	}
	return nil
}

// minRatio and maxRatio: a ratio of the provider's count to ours outside these bounds can't
// come from a tokenizer: the report is of another prompt. hiddenTokens is the excess allowed
// on top: what a provider adds to every prompt.
const (
	minRatio, maxRatio = 0.2, 5
	hiddenTokens       = 1 << 10
)

// Errors of usage reports.
var (
	// ErrInvalid: the request is malformed.
	ErrInvalid = errors.New("assemble: invalid request")
	// ErrPromptUnknown: usage was reported for a prompt that is not known.
	ErrPromptUnknown = errors.New("assemble: unknown prompt")
)

// sessionOf is the session that an id names.
func sessionOf(id string) string { return cmp.Or(id, session.DefaultSession) }
