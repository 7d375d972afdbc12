package assemble

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// What is done before a prompt is refused: a talk that is longer than the window begins in
// its middle, and what is asked is cut in its own.

// leastAsked is what is left at least of a goal, or of the newest message, in tokens.
const leastAsked = 64

// cutTries is how often that is cut shorter where sizes did not add up: some layouts show
// it more than once.
const cutTries = 4

// lastResort makes a draft where none fitted so far.
func (t *task) lastResort(ctx context.Context, s *source, f fixed, d *draft, err error) (*draft, error) {
	if errors.Is(err, ErrOverflow) && t.policy == session.PolicyLedger && t.talks(s) {
		t.leavesTalk = true
		d, err = t.fit(ctx, s, f)
	}
	for range cutTries {
		overflow, ok := errors.AsType[*OverflowError](err)
		if !ok {
			break
		}
		cut, failed := t.cutGoal(overflow)
		if failed != nil {
			return nil, failed
		}
		if !cut {
			if cut, failed = t.cutNewest(s, overflow); failed != nil {
				return nil, failed
			}
		}
		if !cut {
			break
		}
		if f, failed = t.fixed(ctx); failed != nil {
			return nil, failed
		}
		d, err = t.fit(ctx, s, f)
	}
	return d, err
}

// talks reports whether something was said that may leave the window: all but instructions,
// pins, and what was said last.
func (t *task) talks(s *source) bool {
	units := t.withoutTalk(s, t.ledgerUnits(s))
	return slices.ContainsFunc(units, func(u window.Unit) bool { return !u.Kept && !u.System && !s.window.Gone.Has(u.Position) })
}

// withoutTalk are units of which the talk may leave, too.
func (t *task) withoutTalk(s *source, units []window.Unit) []window.Unit {
	out := slices.Clone(units)
	last := len(s.groups) - 1
	for last >= 0 && !s.groups[last].Begins() {
		last--
	}
	at := 0
	for i := range out {
		for at < len(s.groups) && s.groups[at].First() < out[i].Position {
			at++
		}
		if at == len(s.groups) || s.groups[at].First() != out[i].Position {
			continue // a fold
		}
		g := s.groups[at]
		out[i].Kept = at >= last || g.Pinned() || g.Open || g.Awaited
	}
	return out
}

// leftOut says what left the window, and how to read it. reader is what the prompt calls fs:read_file.
func leftOut(units []window.Unit, state *window.State, reader string) string {
	n, first, last := 0, uint64(0), uint64(0)
	for i := range units {
		if u := &units[i]; state.Gone.Has(u.Position) {
			n += u.Messages
			last = u.Position
			if first == 0 {
				first = u.Position
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\nEarlier messages are left out, %d from %s to %s. Each can be read by its name: %s %s", n, session.MessageID(first), session.MessageID(last), reader, session.MessageID(last))
}

// cutGoal cuts the goal in its middle, by as much as the prompt is over its budget.
func (t *task) cutGoal(e *OverflowError) (bool, error) {
	size := t.count(t.r.Goal)
	keep := max(size-(e.TotalTokens-e.MaxTokens)-leastAsked/2, leastAsked)
	if keep >= size || e.Part != settings.Goal && size < e.TotalTokens-e.MaxTokens {
		return false, nil
	}
	t.r.Goal = decay.CutTask(t.r.Goal, "", keep, t.count)
	return true, t.rearranged()
}

// cutNewest cuts the newest message of the user in its middle.
func (t *task) cutNewest(s *source, e *OverflowError) (bool, error) {
	for i := len(s.groups) - 1; i >= 0; i-- {
		g := s.groups[i]
		m := g.Members[0].Entry.Message
		if !g.Begins() {
			continue
		}
		if len(g.Members) != 1 || m.Pinned {
			return false, nil
		}
		longest, size := m.Content, t.count(m.Content)
		if len(m.BlocksJSON) > 0 {
			longest, size = "", 0
			for _, s := range content.Texts(content.Parse(m.BlocksJSON)) {
				if n := t.count(s); n > size {
					longest, size = s, n
				}
			}
		}
		keep := max(size-(e.TotalTokens-e.MaxTokens)-leastAsked/2, leastAsked)
		if keep >= size {
			return false, nil
		}
		said, cut := *m, decay.CutTask(longest, session.MessageID(g.First()), keep, t.count)
		said.BlocksJSON = content.WithTexts(m.BlocksJSON, func(s string) string {
			if s == longest {
				return cut
			}
			return s
		})
		if len(m.BlocksJSON) == 0 {
			said.Content = cut
		}
		own := g.Copied()
		own.Members = []pairing.Member{{Entry: g.Members[0].Entry, Use: g.Members[0].Use}}
		own.Members[0].Entry.Message = &said
		own.Turns[0].Said = &said
		s.groups = slices.Clone(s.groups)
		s.groups[i], s.presented, s.faded = own, nil, nil
		if t.policy == session.PolicyPreset {
			return true, nil
		}
		s.entries = nil
		return true, t.enterAll(s)
	}
	return false, nil
}
