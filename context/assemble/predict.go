package assemble

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
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
	// A ratio of the provider's count to ours outside these bounds can't come from a
	// tokenizer: the report is of another prompt.
	minRatio, maxRatio = 0.2, 5
	// An answer that adds answerSpread times as much to the next prompt as its
	// record does, or answerSpread less, does not match the record: it includes thoughts
	// that are not sent again. answerSlack of it are for frames of calls.
	answerSpread = 1.5
	answerSlack  = 64
	// doubtfulSpread is the share of a prediction from which on its reserve says
	// that is unknown.
	doubtfulSpread = 1.0 / 3
)

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
	if !record.Believed(f.anchor) {
		f.anchor = tokens.Anchor{}
	}
	b := render.NewBuilder(t.a.counter, t.job(), t.frame.Set.Tools)
	if err := b.Render(ctx, &t.frame.Frame, nil, nil); err != nil {
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
	return t.meter().Predict(tokens.Request{
		Model: t.r.Model, Local: tokens.Count{Tokens: probeTokens, Exact: model.Exact},
	}, last)
}

// meter is the agent's, or one that has learned nothing.
func (t *task) meter() *tokens.Meter {
	if t.plain {
		return record.NewMeter(t.a.Known.Models)
	}
	return t.a.Known.Meter(t.r.Scope)
}

// predict says what a draft will be counted as: from the prompt that the
// provider counted last, if it begins with that one.
func (t *task) predict(d *draft) {
	b := d.b
	d.asked = tokens.Request{Model: t.r.Model, ID: t.promptID(d), Local: b.Total, Added: b.Total.Tokens}
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
