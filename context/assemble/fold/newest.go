package fold

import (
	"encoding/json"
	"errors"
	"math/bits"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// The newest results are what the model asked for last and has not seen: a prompt that has
// no room for all of them shows a part of each. A result that takes less than its share
// leaves the rest of it to the others.

const (
	// leastShown is the share with which the room is measured: about what the mark takes
	// that says where the whole result can be read.
	leastShown = 32
	// shareTries is how often a share is made smaller where sizes did not add up.
	shareTries = 4
	// shareBits is how precise a share is: one that hardly changes shows the same bytes.
	shareBits = 5
)

// fitting makes what a ledger shows of a history fit.
type fitting struct{ *Folding }

// fitted is what a ledger makes of a history, and the Source that it is shown from. Where
// the newest results would be folded, or do not fit, they are shortened together. Where
// that does not help, steps are folded whose message may still come.
func (c fitting) fitted(s *Material, h history.History) (history.View, *Material, error) {
	v, err := c.ledger.Compact(h)
	if c.Err != nil {
		return v, s, err
	}
	from := s.newest()
	if from < len(s.Groups) && (errors.As(err, new(*history.OverflowError)) || slices.ContainsFunc(v.Made, func(f history.Fold) bool {
		return f.Spans[len(f.Spans)-1].Last >= s.Groups[from].First()
	})) {
		if short, own, ok := c.shortened(s, h, from); ok {
			return short, own, c.Err
		}
	}
	if err == nil || s.Firm || c.Err != nil || !s.release() {
		return v, s, err
	}
	v, err = c.ledger.Compact(h)
	return v, s, err
}

// newest is the index of the first group with results that the model has not seen; that of
// no group where there are none.
func (s *Material) newest() int {
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
// results, as much as there is room for. It is not ok where not even the least fits.
func (c fitting) shortened(s *Material, h history.History, from int) (v history.View, own *Material, ok bool) {
	h.Now = true // what the model has seen makes room first
	var sizes []int
	v, own, err := c.shared(s, h, from, leastShown, &sizes)
	if err != nil || len(sizes) == 0 {
		return v, own, false
	}
	room := h.Budget - v.Tokens
	for _, size := range sizes {
		room += min(size, leastShown)
	}
	share := fairShare(sizes, room)
	for range shareTries {
		if share <= leastShown {
			break
		}
		more, shown, err := c.shared(s, h, from, share, nil)
		if err == nil {
			return more, shown, true
		}
		share -= share/8 + 1
	}
	return v, own, true
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

// entered is a group with its entries.
type entered struct {
	*pairing.Group
	entries []history.Entry
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
