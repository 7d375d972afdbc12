package fold

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// Talks reports whether something was said that may leave the window: all but instructions,
// pins, and what was said last.
func (s *Material) Talks() bool {
	units := s.withoutTalk(s.units())
	return slices.ContainsFunc(units, func(u window.Unit) bool { return !u.Kept && !u.System && !s.window.Gone.Has(u.Position) })
}

// withoutTalk are units of which the talk may leave, too.
func (s *Material) withoutTalk(units []window.Unit) []window.Unit {
	out := slices.Clone(units)
	last := len(s.Groups) - 1
	for last >= 0 && !s.Groups[last].Begins() {
		last--
	}
	at := 0
	for i := range out {
		for at < len(s.Groups) && s.Groups[at].First() < out[i].Position {
			at++
		}
		if at == len(s.Groups) || s.Groups[at].First() != out[i].Position {
			continue // a fold
		}
		g := s.Groups[at]
		out[i].Kept = at >= last || g.Pinned() || g.Open || g.Awaited
	}
	return out
}

// leftOut says what left the window, and how to read it, where some of it was said by somebody:
// by the folds and the handoff nothing else leads to that. reader is what the prompt calls
// fs:read_file.
func leftOut(units []window.Unit, state *window.State, reader string) string {
	n, first, last, said := 0, uint64(0), uint64(0), false
	for i := range units {
		if u := &units[i]; state.Gone.Has(u.Position) {
			said = said || u.Kept
			n += u.Messages
			last = u.Position
			first = cmp.Or(first, u.Position)
		}
	}
	if !said {
		return ""
	}
	return fmt.Sprintf("\nEarlier messages are left out, %d from %s to %s. Each can be read by its name: %s %s", n, session.MessageID(first), session.MessageID(last), reader, session.MessageID(last))
}

// LeastAsked is what is left at least of a goal, or of the newest message, in tokens.
const LeastAsked = 64

// CutNewest cuts the newest message of the user in its middle, so that the prompt takes over
// tokens less; false where it can't be cut.
func (c *Folding) CutNewest(s *Material, over int) (bool, error) {
	for i := len(s.Groups) - 1; i >= 0; i-- {
		g := s.Groups[i]
		m := g.Members[0].Entry.Message
		if !g.Begins() {
			continue
		}
		if len(g.Members) != 1 || m.Pinned {
			return false, nil
		}
		longest, size := m.Content, c.Text(m.Content)
		if len(m.BlocksJSON) > 0 {
			longest, size = "", 0
			for _, s := range content.Texts(content.Parse(m.BlocksJSON)) {
				if n := c.Text(s); n > size {
					longest, size = s, n
				}
			}
		}
		keep := max(size-over-LeastAsked/2, LeastAsked)
		if keep >= size {
			return false, nil
		}
		said, cut := *m, decay.CutTask(longest, session.MessageID(g.First()), keep, c.Text)
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
		s.Groups = slices.Clone(s.Groups)
		s.Groups[i], s.presented, s.faded = own, nil, nil
		if c.Policy == session.PolicyPreset {
			return true, nil
		}
		_, err := c.enterAll(s)
		return true, err
	}
	return false, nil
}
