package fold

import (
	"cmp"
	"encoding/json"
	"math"
	"math/bits"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// The newest results are what the model asked for last and has not seen: a prompt that has
// no room for all of them shows a part of each. A result that takes less than its share
// leaves the rest of it to the others.

const (
	// leastShown is the share with which the room is measured: about what the mark takes
	// that says where the whole result can be read.
	leastShown = 32
	// leastKept is the smallest share of a result, mark included, for which nothing else has to
	// leave: before it becomes smaller, what the user said long ago makes room.
	leastKept = 64
	// shareTries is how often a share is made smaller where sizes did not add up.
	shareTries = 4
	// shareBits is how precise a share is: one that hardly changes shows the same bytes.
	shareBits = 5
)

// fitting makes what a ledger shows of a history fit.
type fitting struct {
	*Folding
	// least is what each of the newest results must show of itself; 0 lets them be folded.
	least int
}

// fitted is what a ledger makes of a history, and the Source that it is shown from. Where
// the newest results would be folded, or do not fit, they are shortened together. Where
// that does not help and they may be folded, steps are folded, too, whose message may still
// come. share is what each of the newest results takes at most: 0 if they are folded.
func (c fitting) fitted(s *Material, h history.History) (v history.View, own *Material, share int, err error) {
	v, err = c.ledger.Compact(h)
	if c.Err != nil {
		return v, s, 0, err
	}
	from := s.newest()
	if from == len(s.Groups) {
		share = math.MaxInt
	} else if share = c.shareIn(s, &v, from); err != nil || share == 0 {
		short, shown, most, failed := c.shortened(s, h, from)
		if failed == nil && most > 0 {
			return short, shown, most, c.Err
		}
		if c.least > 0 {
			return v, s, 0, cmp.Or(failed, err, error(&history.OverflowError{Tokens: h.Budget + 1, Budget: h.Budget}))
		}
	}
	if err == nil || s.Firm || c.Err != nil || !s.release() {
		return v, s, share, err
	}
	v, err = c.ledger.Compact(h)
	return v, s, c.shareIn(s, &v, from), err
}

// shareIn is what the groups from one on show of each result in a view that shortened none of
// them: all, or nothing where some are folded.
func (c fitting) shareIn(s *Material, v *history.View, from int) int {
	if from < len(s.Groups) && slices.ContainsFunc(v.Made, func(f history.Fold) bool { return f.Spans[len(f.Spans)-1].Last >= s.Groups[from].First() }) {
		return 0
	}
	return math.MaxInt
}

// newest is the index of the first group with results that the model has not seen; that of
// no group where there are none. Which they are is settled once: letting go of steps that are
// waited for changes nothing about what was seen.
func (s *Material) newest() int {
	if !s.settled {
		if at := s.firstNewest(); at < len(s.Groups) {
			s.unseen = s.Groups[at].First()
		}
		s.settled = true
	}
	at := len(s.Groups)
	for i, g := range slices.Backward(s.Groups) {
		if s.unseen == 0 || g.First() < s.unseen {
			break
		}
		if gives(g) {
			at = i
		}
	}
	return at
}

func (s *Material) firstNewest() int {
	at := len(s.Groups)
	for i, g := range slices.Backward(s.Groups) {
		switch {
		case at == len(s.Groups) && !gives(g) && !g.Answers():
			continue // what the user said behind the results
		case !gives(g), at < len(s.Groups) && !g.Awaited && g.Answers():
			return at
		}
		at = i
	}
	return at
}

// keepNewest keeps the units of the newest results in the window.
func (s *Material) keepNewest(units []window.Unit) {
	for i := range units {
		u := &units[i]
		u.Kept = u.Kept || s.newest() < len(s.Groups) && u.Position >= s.Groups[s.newest()].First()
	}
}

// gives reports whether a group has results.
func gives(g *pairing.Group) bool {
	return slices.ContainsFunc(g.Members, func(m pairing.Member) bool {
		return m.Entry.Step != nil || m.Use != pairing.Spoken || m.Entry.Message.Role == session.User && hasResults(m.Entry.Message)
	})
}

func hasResults(m *session.Message) bool {
	return len(m.BlocksJSON) > 0 && slices.ContainsFunc(content.Parse(m.BlocksJSON), func(p content.Block) bool { return p.Kind == content.Result })
}

// shortened is a history in which the groups from one on show a fair part of each of their
// results, as much as there is room for. The share is 0 where there is nothing to shorten, and
// it is an error where not even the least fits.
func (c fitting) shortened(s *Material, h history.History, from int) (v history.View, own *Material, share int, err error) {
	h.Now = true // what the model has seen makes room first
	least := max(c.least, leastShown)
	var sizes []int
	v, own, err = c.shared(s, h, from, least, &sizes)
	if err != nil || len(sizes) == 0 {
		return v, own, 0, err
	}
	room := h.Budget - v.Tokens
	for _, size := range sizes {
		room += min(size, least)
	}
	share = fairShare(sizes, room)
	for range shareTries {
		if share <= least {
			break
		}
		more, shown, err := c.shared(s, h, from, share, nil)
		if err == nil {
			return more, shown, share, nil
		}
		share -= share/8 + 1
	}
	return v, own, least, nil
}

// fairShare is the most that each of some sizes may take, in at most room together.
func fairShare(sizes []int, room int) int {
	slices.Sort(sizes)
	share := 0
	for i, size := range sizes {
		if share = max(room, 0) / (len(sizes) - i); size > share {
			break
		}
		room -= size
	}
	drop := max(bits.Len(uint(share))-shareBits, 0) //nolint:gosec // a share is not negative
	return share >> drop << drop
}

// shared is a history in which no result of the groups from one on takes more than a share.
// Their sizes are added to sizes where that is not nil.
func (c fitting) shared(s *Material, h history.History, from, share int, sizes *[]int) (history.View, *Material, error) {
	own := *s
	own.Groups = slices.Clone(s.Groups)
	first := s.Groups[from].First()
	at := slices.IndexFunc(s.entries, func(e history.Entry) bool { return e.Group >= first })
	own.entries = slices.Clone(s.entries[:at])
	for i := from; i < len(own.Groups); i++ {
		g, err := c.withShares(own.Groups[i], share, sizes)
		if err != nil {
			return history.View{}, s, err
		}
		own.Groups[i] = g.Group
		own.entries = append(own.entries, g.entries...)
	}
	h.Entries = own.entries
	v, err := c.ledger.Compact(h)
	v.Decision.Reason = madeByBudget(v.Decision.Reason)
	for i := range v.Made {
		v.Made[i].Reason = madeByBudget(v.Made[i].Reason)
	}
	return v, &own, err
}

func madeByBudget(r history.Reason) history.Reason {
	if r == history.ByCaller {
		return history.ByBudget
	}
	return r
}

// withShares is a group that stays, and of whose results none takes more than a share.
func (c fitting) withShares(g *pairing.Group, share int, sizes *[]int) (entered, error) {
	fit := func(e *history.Entry) func(text string) string {
		return func(text string) string {
			size := c.Text(text)
			if sizes != nil {
				*sizes = append(*sizes, size)
			}
			if size <= share {
				return text
			}
			return c.ledger.Cut(e, text, share)
		}
	}
	refs := pairing.EntriesOf(g)
	own := g.Copied()
	own.Members = slices.Clone(g.Members)
	for i := range own.Members {
		m := &own.Members[i]
		said := m.Entry.Message
		if said == nil || len(said.BlocksJSON) == 0 || said.Pinned || said.Role != session.Tool && !hasResults(said) {
			continue
		}
		short := *said
		short.BlocksJSON = shareOf(said, fit(&refs[i]))
		m.Entry.Message = &short
		own.Replace(m.Entry.Position, said, &short)
	}
	entries := pairing.EntriesOf(own)
	pairing.Show(own, entries, c.stage.reference, c.reader)
	if err := weigh(c.Tally, c.ledger, own, entries); err != nil {
		return entered{}, err
	}
	for i := range entries {
		e := &entries[i]
		e.Open = true
		if e.Kind != history.Result && e.Kind != history.Step || e.Whole || e.Pinned {
			continue
		}
		e.Limit = share
		if sizes != nil {
			*sizes = append(*sizes, c.Text(c.ledger.Shown(&history.Entry{Shown: e.Shown, Output: e.Output})))
		}
	}
	return entered{own, entries}, c.Err
}

// shareOf are the blocks of a result with other texts.
func shareOf(m *session.Message, change func(string) string) json.RawMessage {
	if m.Role == session.Tool {
		return content.WithTexts(m.BlocksJSON, change)
	}
	return content.WithOutputs(m.BlocksJSON, change)
}
