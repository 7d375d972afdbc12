package pairing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// FoldHeader begins a fold, and explains the short references of its lines. reader is
// what the prompt calls fs:read_file.
func FoldHeader(reader string) string {
	return "[Earlier steps, folded: step call → result, or the names in it. " +
		"Full text of step 012: " + reader + " step_012; of m17: " + reader + " message_017]"
}

// EntriesOf returns what a policy sees of a group, but for how a prompt shows
// the outputs of steps, which Show adds.
func EntriesOf(g *Group) []history.Entry {
	entries := make([]history.Entry, len(g.Members))
	for i := range g.Members {
		m := &g.Members[i]
		e := &entries[i]
		if m.Entry.Step != nil {
			*e = stepEntry(m)
		} else {
			*e = messageEntry(m)
		}
		e.Position, e.Group, e.Open = m.Entry.Position, g.First(), g.Open || g.Awaited
	}
	return entries
}

// Show adds how a prompt shows the outputs of calls: guarded, so that what they print
// does not pass for the words of a fold. style is how a result says where its full text
// lies, and reader what the prompt calls fs:read_file.
func Show(g *Group, entries []history.Entry, style step.ReferenceStyle, reader string) {
	for i := range g.Members {
		e := &entries[i]
		s := g.Members[i].Entry.Step
		if s == nil {
			if e.Kind == history.Result {
				e.Shown = guardOf(g.Members[i].Use)(cmp.Or(e.Shown, e.Output))
			}
			continue
		}
		e.CutMark, e.CutBytes = s.CutMark()
		full := text.Valid(fullText(s, style, reader))
		marked := marksIn(full, e.CutMark)
		e.Shown = guard.WithMarks(full, marked)
		e.Read = readingOf(s, full, marked)
	}
}

// guardOf is what keeps an output from passing for the prompt's own words. In a message of
// the user only its words distinguish it from other parts of the prompt.
func guardOf(use Use) func(string) string {
	if use == Observed || use == Stray {
		return guard.Text
	}
	return guard.Output
}

// marksIn are the places in an output before which a guard stands. The words that say what
// was left out of it are the server's own.
func marksIn(output, cutMark string) []int {
	places := guard.FoldLines(output)
	if at := strings.Index(output, cutMark); cutMark != "" && at >= 0 {
		places = slices.DeleteFunc(places, func(place int) bool { return at <= place && place < at+len(cutMark) })
	}
	return places
}

// readingOf is the text that a step has read, in what is shown of it: output, with marks
// at some places.
func readingOf(s *step.Step, output string, marked []int) *history.Reading {
	if s.ToolName != step.ToolReadFile || s.Inline == "" || !s.Success() {
		return nil
	}
	start := strings.Index(output, s.Inline)
	value, err := text.DecodeJSON(s.Args)
	args, ok := value.(map[string]any)
	if start < 0 || err != nil || !ok {
		return nil
	}
	place := step.PlaceOf(args)
	if len(marked) == 0 {
		return &history.Reading{Start: start, End: start + s.Beginning(), Next: place.Next}
	}
	from, to := guard.Marked(marked, start), guard.Marked(marked, start+s.Beginning())
	next := func(beginning string, ended bool) string {
		read := guard.Unmarked(marked, from+len(beginning)) - start
		return place.Next(s.Inline[:max(read, 0)], ended)
	}
	return &history.Reading{Start: from, End: to, Next: next}
}

// stepEntry is what a policy sees of a step.
func stepEntry(m *Member) history.Entry {
	s := m.Entry.Step
	id := s.ID()
	e := history.Entry{
		Kind:     history.Result,
		Ref:      strings.TrimPrefix(id, "step_"),
		FullRef:  id,
		Full:     Reference(s),
		Label:    stepLabel(s),
		Output:   OutputOf(s),
		Brief:    s.Inline == "",
		Exit:     exitCode(s),
		Failed:   !s.Success(),
		CallID:   s.CallID,
		Pinned:   s.Pinned,
		Evidence: s.Evidence,
	}
	if m.Use == Alone {
		e.Kind, e.Text = history.Step, s.Thought
		e.Calls = []history.Call{{ID: s.CallID, Name: CalledName(s), Args: Arguments(s)}}
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
func messageEntry(m *Member) history.Entry {
	said := m.Entry.Message
	e := history.Entry{
		Ref:     fmt.Sprintf("m%d", m.Entry.Position),
		FullRef: fmt.Sprintf("message_%03d", m.Entry.Position),
		Label:   MessageLabel(m.Entry),
		Pinned:  said.Pinned,
	}
	text := said.Content
	if len(said.BlocksJSON) > 0 {
		text = BlockText(said.BlocksJSON)
	}
	switch {
	case m.Use == Again:
		e.Kind = history.Unseen
	case m.Use == answer, m.Use == Observed, m.Use == Stray:
		e.Kind, e.CallID, e.Output = history.Result, said.ToolCallID, text
		// Blocks stay as they are. A stray one becomes text with them.
		e.Whole = len(said.BlocksJSON) > 0 && m.Use != Stray
		if m.Use == Stray && len(said.BlocksJSON) > 0 {
			e.Shown = media.HideIn(JoinLines([]string{said.Content, string(said.BlocksJSON)}), stubOf(e.FullRef))
		}
		e.Output = media.HideIn(e.Output, stubOf(e.FullRef))
	case said.Role == session.Assistant:
		e.Kind, e.Text, e.Calls = history.Turn, text, CallsOf(said)
	default:
		e.Kind, e.Text = history.Fixed, text
	}
	return e
}

// stubOf stands for bytes that a tool's message has as text: what they are, and where they
// can be read.
func stubOf(ref string) func(media.Info) string {
	return func(i media.Info) string { return "[" + i.Words() + ", " + ref + "]" }
}

// CallsOf are the calls that a message asks for.
func CallsOf(m *session.Message) []history.Call {
	wishes := m.ToolCalls
	if len(wishes) == 0 {
		wishes = CallsWithin(m)
	}
	calls := make([]history.Call, len(wishes))
	for i, w := range wishes {
		calls[i] = history.Call{ID: w.ID, Name: w.Name, Args: w.Arguments}
	}
	return calls
}

// stepLabel names a step for people.
func stepLabel(s *step.Step) string { return s.ID() + " (" + s.ToolName + ")" }

// MessageLabel names a message for people.
func MessageLabel(e session.Entry) string {
	return fmt.Sprintf("message %d (%s)", e.Position, e.Message.Role)
}

// callOf is a step as its own call.
func callOf(e session.Entry) Call {
	s := e.Step
	return Call{
		ID:      s.CallID,
		Wish:    session.ToolCall{ID: "call_" + s.ID(), Name: CalledName(s), Arguments: Arguments(s)},
		thought: s.Thought,
		label:   stepLabel(s),
		Result:  e.Position,
	}
}

// CalledName is the tool's name as the model wrote it.
func CalledName(s *step.Step) string {
	if s.CalledAs != "" {
		return s.CalledAs
	}
	return s.ToolName
}

// Arguments are all of them where the step kept them, else the minimal ones.
func Arguments(s *step.Step) string {
	for _, args := range []json.RawMessage{s.Args, s.MinimalArgs} {
		if len(args) > 0 {
			return string(args)
		}
	}
	return "{}"
}
