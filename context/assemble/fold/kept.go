package fold

import (
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// What is kept of the histories of sessions from one prompt to the next.
const (
	// maxEnteredBytes bounds the entries that are kept of all sessions, with their texts: those
	// of some hundred long ones. When it is full, sessions of the tenant with the largest share
	// are let go.
	maxEnteredBytes = 32 << 20
	// maxSessionEnteredBytes bounds those of one session: what takes more is made anew for each
	// prompt.
	maxSessionEnteredBytes = maxEnteredBytes / 8
	// enteredBytes is about what an entry takes in addition to its texts.
	enteredBytes = 800
)

// enteredKey says whose entries are kept, and all that they depend on other than their group:
// the model and the format decide what they count and what the tool is called that reads a
// result on. What else they are made with is the same for all prompts of a Stage.
type enteredKey struct {
	scope          kv.Scope
	session, model string
	format         provider.Format
}

// entered is a group with its entries, which are only read.
type entered struct {
	*pairing.Group
	entries []history.Entry
}

func (c *Folding) enteredKey() enteredKey {
	return enteredKey{c.moment.Scope, c.moment.SessionID, c.Model, c.Format}
}

// enterAll makes entries of the groups of a Source, and returns each with its own. Groups that
// are as they were for the session's last prompt have theirs.
func (c *Folding) enterAll(s *Material) ([]entered, error) {
	before, _ := c.stage.entered.Get(c.moment.Scope.Tenant, c.enteredKey())
	all := make([]entered, len(s.Groups))
	s.entries = nil
	for i, g := range s.Groups {
		for len(before) > 0 && before[0].First() < g.First() {
			before = before[1:]
		}
		if len(before) > 0 && before[0].Same(g) {
			all[i] = before[0]
		} else {
			entries := pairing.EntriesOf(g)
			pairing.Show(g, entries, c.stage.reference, c.reader)
			if err := weigh(c.Tally, c.ledger, g, entries); err != nil {
				return nil, err
			}
			if c.Err != nil {
				return nil, c.Err
			}
			all[i] = entered{g, entries}
		}
		for _, e := range all[i].entries {
			e.Open = g.Open || g.Awaited
			s.entries = append(s.entries, e)
		}
	}
	return all, nil
}

// keep keeps entered groups for the session's next prompt.
func (c *Folding) keep(all []entered) {
	n := 0
	for i := range all {
		for j := range all[i].entries {
			n += enteredBytes + read.Bytes(all[i].Members[j].Entry) + len(all[i].entries[j].Shown)
		}
	}
	if n <= maxSessionEnteredBytes {
		c.stage.entered.Put(c.moment.Scope.Tenant, c.enteredKey(), all, n)
	}
}
