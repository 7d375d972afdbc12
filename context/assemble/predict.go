package assemble

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// fixed is what a prompt has beside its history, and how much there may be of
// all of it.
type fixed struct {
	system, tools, goal int
	// hard is the most tokens, as they are counted here, that the model will
	// make fit the budget; soft leaves the reserve free, too.
	hard, soft int
	// anchor is what the provider told of the session last.
	anchor tokens.Anchor
}

func (f fixed) tokens() int { return f.system + f.tools + f.goal + tokens.ReplyTokens }

// fixed counts what stands around the history.
func (t *task) fixed(ctx context.Context) (f fixed, err error) {
	if f.anchor, err = t.a.log.Anchor(ctx, t.r.Scope, t.r.SessionID); err != nil {
		return f, fmt.Errorf("assemble: read anchor: %w", err)
	}
	b := newBuilder(t.a.counter, t.r, t.tools)
	if err := b.begin(); err != nil {
		return f, err
	}
	if _, err := b.end(); err != nil {
		return f, err
	}
	f.system, f.tools, f.goal = b.parts[partSystem], b.parts[partTools], b.parts[partGoal]
	f.hard, f.soft = t.limits(f.anchor)
	return f, nil
}

// probeTokens are predicted to learn a ratio.
const probeTokens = 1_000_000

// limits returns how many tokens, as they are counted here, fit the budget:
// just so, and with the reserve.
func (t *task) limits(last tokens.Anchor) (hard, soft int) {
	model := t.a.counter.Model(t.r.Model)
	probe := t.meter().Predict(tokens.Prompt{
		Model: t.r.Model, Local: tokens.Count{Tokens: probeTokens, Exact: model.Exact},
	}, last)
	share := float64(t.r.MaxTokens) * probeTokens
	return int(share / float64(probe.Tokens)), int(share / float64(probe.Tokens+probe.Reserve))
}

func (t *task) meter() *tokens.Meter { return t.a.known.meter(t.r.Scope) }

// predict says what a draft will be counted as: from the prompt that the
// provider counted last, if it begins with that one.
func (t *task) predict(d *draft) {
	b := d.b
	d.asked = tokens.Prompt{Model: t.r.Model, ID: t.promptID(d), Local: b.total, Added: b.total.Tokens}
	if at := b.endOf(d.last); at >= 0 {
		d.asked.Base = d.last.ID
		d.asked.Added -= d.last.Local
		if at+1 < len(b.places) && b.roles[at+1] == session.Assistant {
			// It is the answer, which the anchor counts.
			d.asked.Added -= b.places[at+1].tokens - b.places[at].tokens
		} else {
			d.last.Answer = 0
		}
	}
	d.predicted = t.meter().Predict(d.asked, d.last)
}

// endOf returns the place up to which the prompt is the anchored one, or -1.
func (b *builder) endOf(a tokens.Anchor) int {
	prefix, _, ok := strings.Cut(a.ID, "-")
	if !ok || a.Model != b.request.Model {
		return -1
	}
	var sum prefixSum
	if len(prefix) != hex.EncodedLen(len(sum)) {
		return -1
	}
	if _, err := hex.Decode(sum[:], []byte(prefix)); err != nil {
		return -1
	}
	for i := len(b.places) - 1; i >= 0; i-- {
		if b.places[i].sum == sum {
			return i
		}
	}
	return -1
}

// promptID names a prompt by everything before its goal, and by the rest.
func (t *task) promptID(d *draft) string {
	rest := sha256.Sum256([]byte(t.r.Model + "\x00" + t.r.Goal))
	return d.b.settled().sum.String() + "-" + hex.EncodeToString(rest[:4])
}
