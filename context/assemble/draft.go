package assemble

import (
	"context"
	"errors"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// draft is a prompt that may yet be refused.
type draft struct {
	*fold.Draft

	b *render.Builder
	// asked is the prompt as it is predicted, from last; predicted is what it
	// will be counted as.
	asked     tokens.Request
	last      tokens.Anchor
	predicted tokens.Prediction
}

// Drafts of one prompt. A second one leaves the reserve free, a third makes up for sizes
// that did not add up. More are made only while none fits: the parts around the history may
// grow with another end of the history, and a provider may count less than we do, so one
// step back is not enough.
const maxDrafts, maxMisfits = 3, 8

// fit makes a draft within the budget. Before a prompt is refused it is counted
// again with less faith in what usage reports said: a session whose prompts are
// all refused could never hear better.
func (t *task) fit(ctx context.Context, s *fold.Material, fixed fixed) (*draft, error) {
	d, err := t.fitAs(ctx, s, fixed)
	for errors.Is(err, ErrOverflow) && t.doubts(&fixed) {
		d, err = t.fitAs(ctx, s, fixed)
	}
	return d, err
}

// fitAs makes a draft within the budget. The reserve is kept free where that is
// possible.
func (t *task) fitAs(ctx context.Context, s *fold.Material, fixed fixed) (*draft, error) {
	var fits *draft
	limit := fixed.hard
	for n := 1; ; n++ {
		d, err := t.draft(ctx, s, fixed, limit)
		if fits != nil && errors.Is(err, ErrOverflow) {
			return fits, nil
		}
		if err != nil {
			return nil, err
		}
		over := d.predicted.Tokens + d.predicted.Reserve - t.r.MaxTokens
		most := t.r.MaxTokens
		if d.Renewal != nil { // its pressure is under 1
			over, most = over+1, most-1
		}
		if over <= 0 {
			return d, nil
		}
		if fits == nil && d.predicted.Tokens <= most {
			fits = d
			s.Firm = true
		}
		if n >= maxDrafts && fits != nil {
			return fits, nil
		}
		if n >= maxMisfits {
			// A renewed window that misses by little has more to give than its history.
			t.folding.Misses = t.folding.Misses || d.Renewal != nil
			return nil, t.overflow(s, fixed, &history.OverflowError{Tokens: d.b.Parts[settings.History]})
		}
		less := 1
		if fits == nil { // the history kept to its limit, and still it was too much
			less = max(over*(n+1)/2, 1)
		}
		limit = min(fixed.soft, limit-less, d.b.Total.Tokens-max(over, 1)-t.joining(s))
	}
}

// draft makes a prompt whose history takes what is left of limit tokens, as
// they are counted here.
func (t *task) draft(ctx context.Context, s *fold.Material, fixed fixed, limit int) (*draft, error) {
	d := &draft{last: fixed.anchor}
	var err error
	d.Draft, err = t.folding.History(ctx, s, t.ask(), max(limit-fixed.tokens()+t.joining(s), 1))
	if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
		return nil, t.overflow(s, fixed, overflow)
	}
	if err != nil {
		return nil, err
	}
	d.b = render.NewBuilder(t.a.counter, t.job(), t.frame.Set.Tools)
	if err := d.b.Render(ctx, &t.frame.Frame, d.Items, t.trail); err != nil {
		return nil, err
	}
	t.predict(d)
	return d, nil
}

// joining is what it may save that the newest message of the user and the runtime
// sections are one message.
func (t *task) joining(s *fold.Material) int {
	if t.query(s) == nil {
		return 0
	}
	return t.folding.MessageTokens()
}

// query is the newest message of the user, if the log ends with it and the prompt's last
// message begins with it.
func (t *task) query(s *fold.Material) *session.Message {
	if !t.frame.Frame.TakesQuery() || len(s.Groups) == 0 || render.Merges(t.r.Format) {
		return nil
	}
	members := s.Groups[len(s.Groups)-1].Members
	last := &members[len(members)-1]
	if it := (pairing.Item{Message: deref(last.Entry.Message)}); last.Use == pairing.Spoken && it.Asks() {
		return last.Entry.Message
	}
	return nil
}

func deref(m *session.Message) session.Message {
	if m == nil {
		return session.Message{}
	}
	return *m
}

// joined is what that does save, exactly.
func (t *task) joined(s *fold.Material) int {
	query := t.query(s)
	if query == nil {
		return 0
	}
	size := func(messages []layout.Message) (n int) {
		for i := range messages {
			c, err := t.tally.Message("", messages[i].Message)
			if err != nil {
				return 0
			}
			n += c
		}
		return n
	}
	alone := []layout.Message{{Message: *query}}
	return size(alone) + size(t.frame.Frame.Last(nil, false)) - size(t.frame.Frame.Last(query, false))
}

// ask is what the prompt asks of its history.
func (t *task) ask() fold.Ask {
	f := t.frame
	return fold.Ask{Goal: f.Goal, AsTask: f.Table.Goal == layout.GoalTask, Turn: t.turn(), MaxTokens: t.r.MaxTokens, Window: fold.Window{
		Forced: t.forced, Evicting: f.Evicting, Memory: f.Memory, TalkLeaves: t.talkLeaves,
		Working: t.moment.Working, Swapped: f.Swapped, Figures: f.Figures, Now: t.a.frames.Clock(),
	}}
}
