package replay

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Run is one recorded run. Entry i stands for message i.
type Run struct {
	// ID names the run.
	ID string
	// Messages are its messages, Entries what the policies see of them.
	Messages []Message
	Entries  []history.Entry
	// results has, for each message, the messages that answer its calls, in the
	// order of the calls; 0 for none.
	results [][]int
	// actions are the actions in the texts of messages of a run without calls, by the index
	// of the message.
	actions map[int]step.Action
}

// asked are the calls of a message, or the action that it holds.
func (r *Run) asked(i int) []history.Call {
	if a, ok := r.actions[i]; ok {
		return []history.Call{{Name: a.Name, Args: string(text.CanonicalJSON(a.Args))}}
	}
	return r.Entries[i].Calls
}

// commands are the arguments of a message's calls, or the inputs of the action that
// it holds, as they were written.
func (r *Run) commands(i int) []string {
	var all []string
	for _, c := range r.Entries[i].Calls {
		all = append(all, c.Args)
	}
	if a, ok := r.actions[i]; ok {
		for _, name := range slices.Sorted(maps.Keys(a.Args)) {
			if text, isText := a.Args[name].(string); isText {
				all = append(all, text)
			}
		}
	}
	return all
}

// Acts is how many calls and actions the run has.
func (r *Run) Acts() int {
	n := len(r.actions)
	for i := range r.Entries {
		n += len(r.Entries[i].Calls)
	}
	return n
}

// Message is one recorded message, of any provider, in one form.
type Message struct {
	// Role is "system", "user", "assistant", "tool" or whatever was recorded.
	Role string
	// Text is what was said, or what a tool gave.
	Text string
	// Calls are the calls of an assistant message.
	Calls []history.Call
	// CallID is the call that a tool message answers.
	CallID string
	// Raw is the whole output of a tool where Text has a frame around it or is
	// cut; Exit its exit code.
	Raw  *string
	Exit *int
	// Failed says that the tool said it failed.
	Failed bool
	// ExtraTokens is the size of its images.
	ExtraTokens int
	// continues: it is a part of the message of the assistant before it.
	continues bool
}

// The roles that mean something here. All others stay as they are.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// newRun makes a run of messages.
func newRun(id string, messages []Message) Run {
	messages = joinTurns(messages)
	run := Run{ID: id, Messages: messages, Entries: make([]history.Entry, len(messages)), results: make([][]int, len(messages)), actions: make(map[int]step.Action)}
	p := pairer{run: &run}
	p.textual, p.observed = observes(messages)
	for i := range messages {
		p.add(i)
	}
	return run
}

// Steps is how many requests the run has: messages of the assistant.
func (r *Run) Steps() int {
	n := 0
	for i := range r.Messages {
		if r.Messages[i].Role == roleAssistant {
			n++
		}
	}
	return n
}

// joinTurns puts together assistant messages that are parts of one turn, and consecutive
// ones of which the first still waits for results: some logs write each call of a turn as
// its own message.
func joinTurns(messages []Message) []Message {
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		last := len(out) - 1
		behind := m.Role == roleAssistant && last >= 0 && out[last].Role == roleAssistant
		if behind && (m.continues || len(out[last].Calls) > 0) {
			out[last].join(m)
			continue
		}
		out = append(out, m)
	}
	return out
}

// join adds what another part of the same message says.
func (m *Message) join(part Message) {
	m.Text = joinText(m.Text, part.Text)
	m.Calls = slices.Concat(m.Calls, part.Calls)
	m.ExtraTokens += part.ExtraTokens
}

// joinText puts a line feed between two texts, if both say something.
func joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// pairer converts messages into what policies see: it numbers calls and finds the
// call that a result answers.
type pairer struct {
	run *Run
	// textual: actions are text. observed: user messages behind an action are what it
	// gave.
	textual, observed bool
	calls             int
	acted             bool
	// waiting are the calls of the newest turn without a result.
	waiting []asking
}

// asking is a call with its number, the message it stands in, and its place
// there.
type asking struct {
	history.Call
	number, turn, place int
}

func (p *pairer) add(i int) {
	m := &p.run.Messages[i]
	name := "message " + strconv.Itoa(i+1)
	e := &p.run.Entries[i]
	*e = history.Entry{
		Position: uint64(i + 1), Text: m.Text, ExtraTokens: m.ExtraTokens,
		Ref: name, Label: fmt.Sprintf("%s (%s)", name, m.Role),
	}
	switch {
	case m.Role == roleAssistant:
		e.Kind, e.Calls, e.Ref = history.Turn, m.Calls, number(p.calls+1)
		p.ask(i, m.Calls)
	case m.Role == roleTool || p.observed && p.acted && m.Role == roleUser:
		e.Kind = history.Result
		m.answer(e)
		p.pair(e)
	}
	p.acted = m.Role == roleAssistant && acts(m.Text)
}

// ask begins a turn. One in plain text asks for one thing.
func (p *pairer) ask(turn int, calls []history.Call) {
	if p.textual {
		calls = make([]history.Call, 1)
		if a, ok := step.ParseAction(p.run.Messages[turn].Text); ok {
			p.run.actions[turn] = a
		}
	}
	p.waiting = p.waiting[:0]
	for i, c := range calls {
		p.waiting = append(p.waiting, asking{c, p.calls + 1 + i, turn, i})
	}
	p.run.results[turn] = make([]int, len(calls))
	p.calls += max(len(calls), 1)
}

// pair gives a result the reference of its call: the one whose id it has, or,
// because ids are missing or repeat in some logs, the first one that waits. One
// that nothing waits for keeps its own.
func (p *pairer) pair(e *history.Entry) {
	if len(p.waiting) == 0 {
		return
	}
	at := max(slices.IndexFunc(p.waiting, func(c asking) bool { return c.ID == e.CallID }), 0)
	c := p.waiting[at]
	e.CallID, e.Ref = c.ID, number(c.number)
	p.run.results[c.turn][c.place] = int(e.Position) - 1
	p.waiting = slices.Delete(p.waiting, at, at+1)
}

// number is the reference of a call.
func number(call int) string { return fmt.Sprintf("%03d", call) }

// observes reports whether the actions of a run are text: no message has native calls,
// and at least three quarters of the assistant's hold an action. Where no message has
// the role of a tool either, user messages say what the actions gave.
func observes(messages []Message) (textual, users bool) {
	turns, actions := 0, 0
	users = true
	for _, m := range messages {
		switch {
		case len(m.Calls) > 0:
			return false, false
		case m.Role == roleTool:
			users = false
		case m.Role == roleAssistant:
			turns++
			if acts(m.Text) {
				actions++
			}
		}
	}
	textual = turns > 0 && 4*actions >= 3*turns
	return textual, textual && users
}

// acts reports whether a text holds an action.
func acts(text string) bool {
	_, ok := step.ParseAction(text)
	return ok
}

// answer fills in what a tool gave.
func (m Message) answer(e *history.Entry) {
	e.Text, e.Output, e.CallID = "", m.Text, m.CallID
	e.Exit, e.Failed = m.Exit, m.Failed
	if m.Raw != nil {
		code := 0
		if m.Exit != nil {
			code = *m.Exit
		}
		e.Output = *m.Raw
		e.Shown = fmt.Sprintf("<returncode>%d</returncode>\n<output>\n%s</output>", code, *m.Raw)
	}
}
