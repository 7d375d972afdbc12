package fold

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Calls whose results were never recorded, in presets of messages.
const (
	// maxLost of them, the newest, are listed.
	maxLost = 10
	// lostParams of a call are named, each with so many characters of its value.
	lostParams, lostChars = 3, 40
)

// lost finds the calls without an answer and that the model waits for no more. It
// returns how many of each group's are older than the newest of all. A history that is
// not literal shows all of them: which are the newest changes with every call.
func (f *faded) lost() map[*pairing.Group]int {
	older := make(map[*pairing.Group]int)
	left := maxLost
	for _, g := range slices.Backward(f.groups) {
		if n := g.Lost(); n > 0 {
			f.lostCalls += n
			if n > left && f.c.Literal {
				older[g] = n - left
			}
			left = max(left-n, 0)
		}
	}
	return older
}

// lostRefs name the newest groups that have so many calls without a result.
func (f *faded) lostRefs(calls int) []string {
	var refs []string
	for _, g := range slices.Backward(f.groups) {
		if n := g.Lost(); n > 0 && calls > 0 {
			refs = append(refs, refsOf(g)...)
			calls -= n
		}
	}
	return refs
}

// repaired is a copy of a group without calls that have no result, and without results
// that no call waits for. The newest calls are listed as text; the first older
// ones leave.
func (r *shapes) repaired(g *pairing.Group) *pairing.Group {
	older := r.older[g]
	own := g.Copied()
	given := make(map[string]bool)
	for i := range g.Members {
		if m := &g.Members[i]; m.Use == pairing.Stray && !m.Entry.Message.Pinned {
			given[pairing.MessageLabel(m.Entry)] = true
		}
	}
	own.Turns = slices.DeleteFunc(own.Turns, func(t *pairing.Turn) bool { return given[t.Label] })
	if g.Open || g.Pinned() {
		return own
	}
	for _, t := range own.Turns {
		var told []string
		gone := make(map[string]bool)
		t.Calls = slices.DeleteFunc(t.Calls, func(c pairing.Call) bool {
			if !c.Waits() {
				return false
			}
			gone[c.ID] = true
			if older--; older < 0 {
				told = append(told, r.earlierCall(c.Wish))
			}
			return true
		})
		if len(gone) > 0 {
			t.Said = withoutCalls(t.Said, gone, told)
		}
	}
	own.Turns = slices.DeleteFunc(own.Turns, func(t *pairing.Turn) bool {
		return t.Said != nil && len(t.Calls) == 0 && t.Output == 0 && t.Said.Content == "" && len(t.Said.BlocksJSON) == 0
	})
	return own
}

// withoutCalls is what the model said without some of its calls, and with texts.
func withoutCalls(said *session.Message, gone map[string]bool, told []string) *session.Message {
	m := *said
	m.ToolCalls = slices.DeleteFunc(slices.Clone(m.ToolCalls), func(c session.ToolCall) bool { return gone[c.ID] })
	if len(m.BlocksJSON) == 0 {
		m.Content = pairing.JoinLines(append([]string{m.Content}, told...))
		return &m
	}
	calls, dialect := false, content.Shared
	m.BlocksJSON = content.Without(m.BlocksJSON, func(p *content.Block) bool {
		if p.Kind != content.Call {
			return false
		}
		dialect = p.Dialect
		calls = calls || !gone[p.ID]
		return gone[p.ID]
	})
	if !calls {
		// Thoughts stand in front of calls or of words, never alone.
		m.BlocksJSON = content.Without(m.BlocksJSON, func(p *content.Block) bool { return p.Kind == content.Thought })
	}
	if len(told) > 0 {
		m.BlocksJSON = withBlock(m.BlocksJSON, dialect.TextBlock(strings.Join(told, "\n")))
	}
	return &m
}

// withBlock is blocks with one more at their end.
func withBlock(blocks, block json.RawMessage) json.RawMessage {
	before := bytes.TrimSuffix(bytes.TrimSpace(blocks), []byte("]"))
	if len(before) <= len("[") {
		return slices.Concat([]byte("["), block, []byte("]"))
	}
	return slices.Concat(before, []byte(","), block, []byte("]"))
}

// earlierCall describes a call that has no result.
func (r *calls) earlierCall(wish session.ToolCall) string {
	if kept, ok := r.withoutWritten(wish); ok {
		wish.Arguments = kept
	}
	args := objectOf(wish.Arguments)
	names := make([]string, 0, len(args))
	for name := range args {
		names = append(names, name)
	}
	slices.Sort(names)
	params := make([]string, 0, lostParams+1)
	for i, name := range names {
		if i == lostParams {
			params = append(params, text.Ellipsis)
			break
		}
		value, ok := args[name].(string)
		if !ok {
			value = string(text.CanonicalJSON(args[name]))
		}
		params = append(params, text.OneLine(name)+"="+text.CutChars(text.OneLine(value), lostChars, text.Ellipsis))
	}
	return "[Earlier call " + text.OneLine(wish.Name) + "(" + strings.Join(params, ", ") + "), result not recorded]"
}
