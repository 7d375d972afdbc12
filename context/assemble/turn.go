package assemble

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// noResult stands in for a result that was not recorded.
const noResult = "No result of this call was recorded."

// item is one message of the history and what it stems from, for people.
type item struct {
	label   string
	message session.Message
}

// items brings calls and results together and yields the history's messages.
// result renders what a step gave.
func items(entries iter.Seq2[session.Entry, error], result func(step.Step) (string, error)) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		p := pairer{result: result, late: make(map[string]string)}
		for e, err := range entries {
			if err == nil {
				err = p.entry(e)
			}
			if err != nil {
				yield(item{}, err)
				return
			}
			if !p.drain(yield) {
				return
			}
		}
		p.end()
		p.drain(yield)
	}
}

// maxHeld bounds the turns that wait for a message to ask for them: as many as
// one message can ask for.
const maxHeld = session.MaxToolCalls

// pairer holds the one turn that may still get results.
type pairer struct {
	result func(step.Step) (string, error)
	open   *turn
	// held are turns of steps alone right before the open one, each with a call
	// id, so that a message that follows may still ask for them.
	held []*turn
	// late names the tools of calls whose turn ended without their result, by
	// call id.
	late map[string]string
	out  []item
}

// turn is one assistant message with calls, and their results.
type turn struct {
	label string
	// recorded is the message from the log; nil when the turn is made of steps
	// alone.
	recorded *session.Message
	turnID   string
	calls    []call
}

// call is one call of a turn.
type call struct {
	id      string // the model's id, empty for a step that has none
	wish    session.ToolCall
	thought string
	label   string
	result  *string
	blocks  json.RawMessage
}

func (p *pairer) drain(yield func(item, error) bool) bool {
	for _, it := range p.out {
		if !yield(it, nil) {
			return false
		}
	}
	p.out = p.out[:0]
	return true
}

func (p *pairer) entry(e session.Entry) error {
	switch {
	case e.Step != nil:
		return p.step(*e.Step)
	case e.Message == nil:
		return fmt.Errorf("entry %d holds neither a message nor a step", e.Position)
	}
	m := *e.Message
	label := fmt.Sprintf("message %d (%s)", e.Position, m.Role)
	switch {
	case m.Role == session.Tool:
		p.toolMessage(label, m)
	case len(m.ToolCalls) > 0:
		p.begin(label, m)
	default:
		p.end()
		p.out = append(p.out, item{label, m})
	}
	return nil
}

func (p *pairer) step(s step.Step) error {
	text, err := p.result(s)
	if err != nil {
		return err
	}
	label := fmt.Sprintf("%s (%s)", s.ID(), s.ToolName)
	if c := p.waiting(s.CallID); c != nil {
		c.result, c.label = &text, label
		return nil
	}
	delete(p.late, s.CallID)
	if p.open == nil || p.open.recorded != nil || s.TurnID == "" || p.open.turnID != s.TurnID {
		p.next(&turn{turnID: s.TurnID})
	}
	p.open.calls = append(p.open.calls, call{
		id:      s.CallID,
		wish:    session.ToolCall{ID: "call_" + s.ID(), Name: calledName(s), Arguments: arguments(s)},
		thought: s.Thought,
		label:   label,
		result:  &text,
	})
	return nil
}

// next opens a turn of steps alone.
func (p *pairer) next(t *turn) {
	if p.open != nil && p.open.recorded == nil && p.open.calls[0].id != "" && len(p.held) < maxHeld {
		p.held = append(p.held, p.open)
	} else {
		p.end()
	}
	p.open = t
}

// toolMessage puts a result that the caller recorded where it belongs. One
// that comes after its turn becomes text, because a provider takes results
// nowhere else. One without a call, or for a call that has its result, is left
// out.
func (p *pairer) toolMessage(label string, m session.Message) {
	if c := p.waiting(m.ToolCallID); c != nil {
		c.result, c.blocks, c.label = &m.Content, m.BlocksJSON, label
		return
	}
	name, ok := p.late[m.ToolCallID]
	if !ok {
		return
	}
	delete(p.late, m.ToolCallID)
	p.end()
	text := fmt.Sprintf("Result of the earlier call %s (%s):", m.ToolCallID, name)
	for _, more := range []string{m.Content, string(m.BlocksJSON)} {
		if more != "" {
			text += "\n" + more
		}
	}
	p.out = append(p.out, item{label, session.Message{Role: session.User, Content: text}})
}

// waiting returns the call of the open turn that awaits a result under id.
func (p *pairer) waiting(id string) *call {
	if p.open == nil || p.open.recorded == nil || id == "" {
		return nil
	}
	for i := range p.open.calls {
		if c := &p.open.calls[i]; c.id == id && c.result == nil {
			return c
		}
	}
	return nil
}

// begin opens a turn with a recorded message. Steps right before it that it
// asks for become its results.
func (p *pairer) begin(label string, m session.Message) {
	t := &turn{label: label, recorded: &m}
	for _, wish := range m.ToolCalls {
		delete(p.late, wish.ID)
		t.calls = append(t.calls, call{id: wish.ID, wish: wish, label: label})
	}
	if p.open != nil && p.open.recorded == nil {
		for _, before := range append(p.held, p.open) {
			before.calls = slices.DeleteFunc(before.calls, t.adopt)
		}
	}
	p.end()
	p.open = t
}

// adopt takes over the result of a step that the turn asks for.
func (t *turn) adopt(done call) bool {
	for i := range t.calls {
		if c := &t.calls[i]; done.id != "" && c.id == done.id && c.result == nil {
			c.result, c.label = done.result, done.label
			return true
		}
	}
	return false
}

// end closes the turns that are open and gives out their messages.
func (p *pairer) end() {
	for _, t := range p.held {
		p.give(t)
	}
	if p.open != nil {
		p.give(p.open)
	}
	p.held, p.open = nil, nil
}

func (p *pairer) give(t *turn) {
	if len(t.calls) == 0 {
		return
	}
	t.distinguish()
	if t.recorded == nil {
		t.label = t.calls[0].label
	}
	p.out = append(p.out, item{t.label, t.message()})
	for _, c := range t.calls {
		text := noResult
		if c.result != nil {
			text = *c.result
		} else {
			p.late[c.id] = c.wish.Name
		}
		p.out = append(p.out, item{c.label, session.Message{
			Role: session.Tool, Content: text, BlocksJSON: c.blocks, ToolCallID: c.wish.ID,
		}})
	}
}

// distinguish gives calls that share an id in one message ids of their own:
// a provider could not tell their results apart.
func (t *turn) distinguish() {
	seen := make(map[string]bool, len(t.calls))
	for i := range t.calls {
		wish := &t.calls[i].wish
		id := wish.ID
		for n := 2; seen[wish.ID]; n++ {
			wish.ID = fmt.Sprintf("%s_%d", id, n)
		}
		seen[wish.ID] = true
	}
}

// message is the assistant message of the turn.
func (t *turn) message() session.Message {
	m := session.Message{Role: session.Assistant}
	if t.recorded != nil {
		m = *t.recorded
	}
	m.ToolCalls = make([]session.ToolCall, len(t.calls))
	var thoughts []string
	for i, c := range t.calls {
		m.ToolCalls[i] = c.wish
		if c.thought != "" && !slices.Contains(thoughts, c.thought) {
			thoughts = append(thoughts, c.thought)
		}
	}
	if t.recorded == nil {
		m.Content = strings.Join(thoughts, "\n")
	}
	return m
}

// calledName is the tool's name as the model wrote it.
func calledName(s step.Step) string {
	if s.CalledAs != "" {
		return s.CalledAs
	}
	return s.ToolName
}

// arguments are all of them where the step kept them, else the minimal ones.
func arguments(s step.Step) string {
	for _, args := range []json.RawMessage{s.Args, s.MinimalArgs} {
		if len(args) > 0 {
			return string(args)
		}
	}
	return "{}"
}
