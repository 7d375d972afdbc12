package assemble

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// foldHeader begins a fold, and explains the short references of its lines.
const foldHeader = "[Earlier steps, folded: step call → result, or the names in it. " +
	"Full text of step 012: fs:read_file step_012; of m17: fs:read_file message_017]"

// entriesOf returns what a policy sees of a group, but for how a prompt shows
// the outputs of steps, which show adds.
func entriesOf(g *group) []history.Entry {
	entries := make([]history.Entry, len(g.members))
	for i := range g.members {
		m := &g.members[i]
		e := &entries[i]
		if m.entry.Step != nil {
			*e = stepEntry(m)
		} else {
			*e = messageEntry(m)
		}
		e.Position, e.Group, e.Open = m.entry.Position, g.first(), g.open || g.awaited
	}
	return entries
}

// show adds how a prompt shows the outputs of steps. style is how a result says
// where its full text lies.
func show(g *group, entries []history.Entry, style step.ReferenceStyle) {
	for i := range g.members {
		if s := g.members[i].entry.Step; s != nil {
			entries[i].Shown = text.Valid(fullText(s, style))
			entries[i].CutMark, entries[i].CutBytes = s.CutMark()
			entries[i].Read = readingOf(s, entries[i].Shown)
		}
	}
}

// readingOf is the text that a step has read, in what is shown of it.
func readingOf(s *step.Step, shown string) *history.Reading {
	if s.ToolName != step.ToolReadFile || s.Inline == "" || !s.Success() {
		return nil
	}
	start := strings.Index(shown, s.Inline)
	value, err := text.DecodeJSON(s.Args)
	args, ok := value.(map[string]any)
	if start < 0 || err != nil || !ok {
		return nil
	}
	return &history.Reading{Start: start, End: start + s.Beginning(), Next: step.PlaceOf(args).Next}
}

// stepEntry is what a policy sees of a step.
func stepEntry(m *member) history.Entry {
	s := m.entry.Step
	e := history.Entry{
		Kind:     history.Result,
		Ref:      strings.TrimPrefix(s.ID(), "step_"),
		FullRef:  s.ID(),
		Full:     reference(s),
		Label:    stepLabel(s),
		Output:   outputOf(s),
		Brief:    s.Inline == "",
		Exit:     exitCode(s),
		Failed:   !s.Success(),
		CallID:   s.CallID,
		Pinned:   s.Pinned,
		Evidence: s.Evidence,
	}
	if m.use == alone {
		e.Kind, e.Text = history.Step, s.Thought
		e.Calls = []history.Call{{ID: s.CallID, Name: calledName(s), Args: arguments(s)}}
	}
	return e
}

// exitCode is that of a step that has one, or nil.
func exitCode(s *step.Step) *int {
	if len(s.Metadata) == 0 {
		return nil
	}
	if code, ok := s.Exit(); ok {
		return &code
	}
	return nil
}

// messageEntry is what a policy sees of a message.
func messageEntry(m *member) history.Entry {
	said := m.entry.Message
	e := history.Entry{
		Ref:     fmt.Sprintf("m%d", m.entry.Position),
		FullRef: fmt.Sprintf("message_%03d", m.entry.Position),
		Label:   messageLabel(m.entry),
		Pinned:  said.Pinned,
	}
	text := said.Content
	if len(said.BlocksJSON) > 0 {
		text = blockText(said.BlocksJSON)
	}
	switch {
	case m.use == again:
		e.Kind = history.Unseen
	case m.use == answer, m.use == observed, m.use == stray:
		e.Kind, e.CallID, e.Output = history.Result, said.ToolCallID, text
		// Blocks stay as they are. A stray one becomes text with them.
		e.Whole = len(said.BlocksJSON) > 0 && m.use != stray
		if m.use == stray && len(said.BlocksJSON) > 0 {
			e.Shown = joined([]string{said.Content, string(said.BlocksJSON)})
		}
	case said.Role == session.Assistant:
		e.Kind, e.Text, e.Calls = history.Turn, text, callsOf(said)
	default:
		e.Kind, e.Text = history.Fixed, text
	}
	return e
}

// callsOf are the calls that a message asks for.
func callsOf(m *session.Message) []history.Call {
	wishes := m.ToolCalls
	if len(wishes) == 0 {
		wishes = callsWithin(m)
	}
	calls := make([]history.Call, len(wishes))
	for i, w := range wishes {
		calls[i] = history.Call{ID: w.ID, Name: w.Name, Args: w.Arguments}
	}
	return calls
}

// stepLabel names a step for people.
func stepLabel(s *step.Step) string { return fmt.Sprintf("%s (%s)", s.ID(), s.ToolName) }

// messageLabel names a message for people.
func messageLabel(e session.Entry) string {
	return fmt.Sprintf("message %d (%s)", e.Position, e.Message.Role)
}

// callOf is a step as a call of its own.
func callOf(e session.Entry) call {
	s := e.Step
	return call{
		id:      s.CallID,
		wish:    session.ToolCall{ID: "call_" + s.ID(), Name: calledName(s), Arguments: arguments(s)},
		thought: s.Thought,
		label:   stepLabel(s),
		result:  e.Position,
	}
}

// calledName is the tool's name as the model wrote it.
func calledName(s *step.Step) string {
	if s.CalledAs != "" {
		return s.CalledAs
	}
	return s.ToolName
}

// arguments are all of them where the step kept them, else the minimal ones.
func arguments(s *step.Step) string {
	for _, args := range []json.RawMessage{s.Args, s.MinimalArgs} {
		if len(args) > 0 {
			return string(args)
		}
	}
	return "{}"
}
