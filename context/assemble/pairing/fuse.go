package pairing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// maxLate bounds how many groups back a call is looked for that a result answers. Some
// harnesses record each block of what the model said as its own message, and some
// users speak before a tool is done.
const maxLate = 16

// late returns the call that awaits a result under an id and its turn, nil for none. What was recorded
// since the message that asks for it goes with that from then on. A call waits until the
// model answers another call: the answer it got then stays. A step may be recorded before
// the message that asks for it, so it belongs to none from before somebody else spoke.
func (p *Pairer) late(id string, isStep bool) (*Turn, *Call) {
	if p.last == nil || id == "" {
		return nil, nil
	}
	spoke := false
	for i := len(p.Groups) - 1; i >= max(p.cut, len(p.Groups)-maxLate); i-- {
		for k, t := range slices.Backward(p.Groups[i].Turns) {
			switch {
			case t.Said == nil:
				spoke = true
				continue
			case t.Said.Role != session.Assistant:
				if (spoke || isStep) && t.Output == 0 && t.at == 0 {
					return nil, nil
				}
				continue
			}
			spoke = true
			if t.waiting(id) == nil {
				continue
			}
			p.gather(i)
			if p.sideBySide(k) {
				for _, next := range p.last.Turns[k+1:] {
					t.fuse(next)
				}
				p.last.Turns = p.last.Turns[:k+1]
			}
			return t, t.waiting(id)
		}
	}
	return nil, nil
}

// gather makes one group of those from one on.
func (p *Pairer) gather(from int) {
	if from == len(p.Groups)-1 {
		return
	}
	all := &Group{}
	for _, g := range p.Groups[from:] {
		all.Members = append(all.Members, g.Members...)
		all.Turns = append(all.Turns, g.Turns...)
	}
	p.Groups = append(p.Groups[:from], all)
	p.last, p.held = all, nil
}

// sideBySide reports whether the turns of the last group behind one are all of the model, and
// none was answered: they and it are one.
func (p *Pairer) sideBySide(turn int) bool {
	turns := p.last.Turns
	calls := 0
	for i, t := range turns[turn:] {
		calls += len(t.Calls)
		if calls > session.MaxToolCalls || i > 0 && !turns[turn].fuses(t) {
			return false
		}
	}
	return len(turns) > turn+1
}

// fuses reports whether two messages of the model that stand side by side are one: it asked
// for calls, none of which has a result yet, or only thought.
func (t *Turn) fuses(next *Turn) bool {
	speaks := func(t *Turn) bool { return t.Said != nil && t.Said.Role == session.Assistant }
	answered := func(c Call) bool { return !c.Waits() }
	return speaks(t) && speaks(next) && len(t.Calls)+len(next.Calls) <= session.MaxToolCalls &&
		!slices.ContainsFunc(t.Calls, answered) && !slices.ContainsFunc(next.Calls, answered)
}

// thinks reports whether a turn is of the model, and has nothing but thoughts.
func (t *Turn) thinks() bool {
	if t.Said == nil || t.Said.Role != session.Assistant || len(t.Calls) > 0 || len(t.Said.BlocksJSON) == 0 {
		return false
	}
	return !slices.ContainsFunc(content.Parse(t.Said.BlocksJSON), func(p content.Block) bool { return p.Kind != content.Thought })
}

// joins adds a message of the model to the one right before it, if they are one.
func (p *Pairer) joins(e session.Entry, t *Turn) bool {
	if p.last == nil || !p.last.Members[len(p.last.Members)-1].Speaks() || t.Said.Role != session.Assistant {
		return false
	}
	before := p.last.Turns[len(p.last.Turns)-1]
	if len(t.Calls) == 0 || len(before.Calls) == 0 {
		if !before.thinks() {
			return false
		}
	}
	if !before.fuses(t) {
		return false
	}
	before.fuse(t)
	p.last.add(e, Spoken)
	return true
}

// fuse adds a message of the model to the one before it.
func (t *Turn) fuse(next *Turn) {
	a, b := *t.Said, *next.Said
	if (len(a.ToolCalls) > 0) != (len(b.ToolCalls) > 0) {
		lift(&a, t.Calls)
		lift(&b, next.Calls)
	}
	if len(a.BlocksJSON)+len(b.BlocksJSON) > 0 {
		a.BlocksJSON = content.Joined(blocksOf(&a), blocksOf(&b))
		a.Content = ""
	} else {
		a.Content = JoinLines([]string{a.Content, b.Content})
	}
	a.ToolCalls = slices.Concat(a.ToolCalls, b.ToolCalls)
	a.ExtraJSON = joinedExtra(a.ExtraJSON, b.ExtraJSON)
	a.Pinned = a.Pinned || b.Pinned
	t.Said, t.Calls = &a, slices.Concat(t.Calls, next.Calls)
}

// lift takes the calls of a message out of its blocks.
func lift(m *session.Message, calls []Call) {
	if len(m.ToolCalls) > 0 || len(calls) == 0 {
		return
	}
	for i := range calls {
		m.ToolCalls = append(m.ToolCalls, calls[i].Wish)
		calls[i].within = false
	}
	m.BlocksJSON = content.Without(m.BlocksJSON, func(p *content.Block) bool { return p.Kind == content.Call })
}

// blocksOf is what a message says as blocks.
func blocksOf(m *session.Message) json.RawMessage {
	if len(m.BlocksJSON) > 0 || m.Content == "" {
		return m.BlocksJSON
	}
	return json.RawMessage("[" + string(content.Shared.TextBlock(m.Content)) + "]")
}

// joinedExtra are the further fields of two messages; of two of a name the first counts.
func joinedExtra(a, b json.RawMessage) json.RawMessage {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b)
	}
	var all, first map[string]json.RawMessage
	if json.Unmarshal(b, &all) != nil || json.Unmarshal(a, &first) != nil {
		return a
	}
	maps.Copy(all, first)
	return text.CanonicalJSON(all)
}

// madeID is the id of a call that came without one.
func madeID(position uint64, index int) string { return fmt.Sprintf("call_%d_%d", position, index+1) }

// identified is a message of the model whose calls all have ids. Gemini's need none.
func identified(m *session.Message, position uint64) *session.Message {
	n := 0
	own := *m
	own.BlocksJSON = content.Identified(m.BlocksJSON, func(p *content.Block) string {
		if p.Kind != content.Call || p.Dialect == content.Gemini {
			return ""
		}
		n++
		return madeID(position, n-1)
	})
	return &own
}

// sound is a message without halves of surrogate pairs in its JSON, which no strict parser
// takes.
func sound(m *session.Message) *session.Message {
	own := *m
	changed := false
	for _, raw := range []*json.RawMessage{&own.BlocksJSON, &own.ExtraJSON} {
		if !bytes.Contains(*raw, []byte(`\u`)) {
			continue
		}
		if whole := text.PairedSurrogates(string(*raw)); whole != string(*raw) {
			*raw, changed = json.RawMessage(whole), true
		}
	}
	if bytes.Contains(own.BlocksJSON, []byte(`\\u`)) && own.Role == session.Assistant {
		// The arguments of a call are JSON within a string of JSON.
		blocks := content.Edit(own.BlocksJSON, func(p *content.Block) json.RawMessage {
			if p.Kind != content.Call || text.PairedSurrogates(p.Arguments) == p.Arguments {
				return nil
			}
			return p.WithArguments(text.PairedSurrogates(p.Arguments))
		})
		changed = changed || !bytes.Equal(blocks, own.BlocksJSON)
		own.BlocksJSON = blocks
	}
	for i := range m.ToolCalls {
		args, extra := text.PairedSurrogates(m.ToolCalls[i].Arguments), text.PairedSurrogates(m.ToolCalls[i].Extra)
		if args == m.ToolCalls[i].Arguments && extra == m.ToolCalls[i].Extra {
			continue
		}
		if &own.ToolCalls[0] == &m.ToolCalls[0] {
			own.ToolCalls = slices.Clone(m.ToolCalls)
		}
		own.ToolCalls[i].Arguments, own.ToolCalls[i].Extra, changed = args, extra, true
	}
	if !changed {
		return m
	}
	return &own
}
