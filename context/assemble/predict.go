package assemble

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// fixed is what a prompt has in addition to its history, and how much there may be of
// all of it.
type fixed struct {
	parts map[string]int // tokens by section
	order []string       // of the sections
	// hard is the most tokens, as they are counted here, that the model will
	// make fit the budget; soft leaves the reserve free, too.
	hard, soft int
	// anchor is the provider's last report on the session.
	anchor tokens.Anchor
}

func (f fixed) tokens() int {
	n := tokens.ReplyTokens
	for _, part := range f.parts {
		n += part
	}
	return n
}

// What is believed of a usage report.
const (
	// A ratio of what the provider counted to what is counted here beyond these is
	// no tokenizer's: the report is of another prompt.
	minRatio, maxRatio = 0.2, 5
	// hiddenTokens may be more than that: what a provider adds to every prompt.
	hiddenTokens = 1 << 10
	// An answer that adds answerSpread times as much to the next prompt as its
	// record does, or answerSpread less, is not what was recorded: thoughts are
	// counted with it that are not sent again. answerSlack of it are for frames of
	// calls.
	answerSpread = 1.5
	answerSlack  = 64
	// doubtfulSpread is the share of a prediction from which on its reserve says
	// that is unknown.
	doubtfulSpread = 1.0 / 3
)

// believed reports whether a provider may have counted the anchored prompt so.
func believed(a tokens.Anchor) bool {
	local, counted := float64(max(a.Local, 1)), float64(a.Real)
	return a.Real > 0 && counted >= minRatio*local && counted <= maxRatio*local+hiddenTokens
}

// answers reports whether an anchor's answer can be the message of so many tokens
// that was recorded.
func answers(a tokens.Anchor, recorded int) bool {
	ratio := min(max(float64(a.Real)/float64(max(a.Local, 1)), minRatio), maxRatio)
	expected, answer := ratio*float64(recorded), float64(a.Answer)
	return answer >= expected/answerSpread-answerSlack && answer <= expected*answerSpread+answerSlack
}

// doubts makes the prompt be predicted with less of what usage reports said:
// without the session's last, and then without all the agent's if they
// contradict each other. It returns false when nothing is left to doubt.
func (t *task) doubts(f *fixed) bool {
	if f.anchor != (tokens.Anchor{}) {
		f.anchor = tokens.Anchor{}
		f.hard, f.soft = t.limits(f.anchor)
		return true
	}
	probe := t.probe(f.anchor)
	if t.plain || float64(probe.Reserve) < doubtfulSpread*float64(probe.Tokens) {
		return false
	}
	t.plain = true
	f.hard, f.soft = t.limits(f.anchor)
	return true
}

// fixed counts what stands around the history.
func (t *task) fixed(ctx context.Context) (f fixed, err error) {
	f.anchor = t.moment.Anchor
	if !believed(f.anchor) {
		f.anchor = tokens.Anchor{}
	}
	b := render.NewBuilder(t.a.counter, t.r.job(), t.tools.Tools)
	if err := b.Render(ctx, &t.frame, nil, nil); err != nil {
		return f, err
	}
	f.parts, f.order = b.Parts, b.Order
	f.hard, f.soft = t.limits(f.anchor)
	return f, nil
}

// probeTokens are predicted to learn a ratio.
const probeTokens = 1_000_000

// limits returns how many tokens, as they are counted here, fit the budget:
// just so, and with the reserve.
func (t *task) limits(last tokens.Anchor) (hard, soft int) {
	probe := t.probe(last)
	share := float64(t.r.MaxTokens) * probeTokens
	return int(share / float64(probe.Tokens)), int(share / float64(probe.Tokens+probe.Reserve))
}

// probe is what a long prompt would be counted as.
func (t *task) probe(last tokens.Anchor) tokens.Prediction {
	model := t.a.counter.Model(t.r.Model)
	return t.meter().Predict(tokens.Prompt{
		Model: t.r.Model, Local: tokens.Count{Tokens: probeTokens, Exact: model.Exact},
	}, last)
}

// meter is the agent's, or one that has learned nothing.
func (t *task) meter() *tokens.Meter {
	if t.plain {
		return newMeter(t.a.known.models)
	}
	return t.a.known.meter(t.r.Scope)
}

// predict says what a draft will be counted as: from the prompt that the
// provider counted last, if it begins with that one.
func (t *task) predict(d *draft) {
	b := d.b
	d.asked = tokens.Prompt{Model: t.r.Model, ID: t.promptID(d), Local: b.Total, Added: b.Total.Tokens}
	if at := b.EndOf(d.last); at >= 0 {
		d.asked.Base = d.last.ID
		d.asked.Added -= d.last.Local
		recorded := 0
		if at = b.AnswerAt(at); at > 0 {
			recorded = b.Places[at].Tokens - b.Places[at-1].Tokens
		}
		if recorded > 0 && answers(d.last, recorded) {
			// It is the answer, which the anchor counts.
			d.asked.Added -= recorded
		} else {
			d.last.Answer = 0
		}
	}
	d.predicted = t.meter().Predict(d.asked, d.last)
}

// promptID names a prompt by everything that the next one begins with, and by the rest.
func (t *task) promptID(d *draft) string {
	all := d.b.Places[len(d.b.Places)-1].Sum
	rest := sha256.Sum256(append([]byte(t.r.Model+"\x00"), all[:]...))
	return d.b.Settled.Sum.String() + "-" + hex.EncodeToString(rest[:4])
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
	// Ratio is how many tokens the provider counted for each one that is counted
	// here.
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
func (a *Assembler) ReportUsage(ctx context.Context, r UsageReport) (UsageLearned, error) {
	if err := r.check(); err != nil {
		return UsageLearned{}, err
	}
	session := sessionOf(r.SessionID)
	sent, ok := a.known.report(r.Scope, session, r.PromptID, r.Usage)
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
func (a *Assembler) learn(ctx context.Context, scope kv.Scope, session string, sent sentPrompt, u tokens.Usage) error {
	anchor := sent.anchor(u)
	if !believed(anchor) {
		return nil
	}
	if sent.usage == (tokens.Usage{}) {
		anchor = a.known.meter(scope).Report(sent.asked, sent.last, u)
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

// CountMessages counts messages as a request to the model holds them. Those that
// Log.AppendMessages would refuse are an *invalid.Error.
func (a *Assembler) CountMessages(model string, messages []session.Message) (tokens.Count, error) {
	if err := session.CheckMessages(messages); err != nil {
		return tokens.Count{}, err
	}
	all := make([]tokens.Message, len(messages))
	for i, m := range messages {
		all[i] = render.Counted(m)
	}
	return a.counter.Messages(model, all)
}
