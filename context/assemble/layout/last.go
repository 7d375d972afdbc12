package layout

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// TakesQuery reports whether the last message begins with the newest message of the user.
func (f *Frame) TakesQuery() bool {
	return f.table.TakesQuery && (f.table.Goal != GoalTask || f.goal == "")
}

// JoinsSteps reports whether neighbours that are steps as text are one message, the last
// ones with the goal.
func (f *Frame) JoinsSteps() bool { return f.table.JoinsSteps }

// Last is the last message, or nothing where there is nothing to say. query is the newest
// message of the user if it ends the history, else nil. If split is set, the query and the
// rest are separate messages, for formats that join neighbours.
func (f *Frame) Last(query *session.Message, split bool) []Message {
	rest, end := f.rest(), f.end
	switch {
	case query == nil && f.goal != "":
		query = &session.Message{Role: session.User, Content: f.goal}
		return f.attach(*query, settings.Goal, rest, end, split)
	case query == nil && len(rest) == 0:
		return nil
	case query == nil:
		return []Message{joined(session.User, rest, inject.Dynamic)}
	case f.goal != "":
		// Both are the request; the message is first, because it is the newest.
		rest, end = f.goalFirst(rest), f.goalFirst(end)
	}
	return f.attach(*query, settings.History, rest, end, split)
}

// goalFirst is the whole goal, and pieces behind it.
func (f *Frame) goalFirst(pieces []Piece) []Piece {
	return f.ruled([]Piece{{settings.Goal, f.goal}}, pieces)
}

// ruled is pieces behind others, with the rule between them.
func (f *Frame) ruled(first, then []Piece) []Piece {
	all := slices.Clone(first)
	for i, p := range then {
		if i == 0 && len(first) > 0 {
			p.Text = f.table.Rule + p.Text
		}
		all = append(all, p)
	}
	return all
}

// rest are the runtime sections and what ends the prompt, as one text.
func (f *Frame) rest() []Piece {
	rest := append([]Piece(nil), f.body...)
	for i, p := range f.end {
		if len(rest) > 0 && i == 0 {
			p.Text = blank + p.Text
		}
		rest = append(rest, p)
	}
	return rest
}

// attach puts the runtime sections next to a message of the user. The end of the prompt
// stays last: end is that part of rest, and the goal if it stands whole behind the message.
func (f *Frame) attach(query session.Message, section string, rest, end []Piece, split bool) []Message {
	asked := Message{Message: query, Pieces: []Piece{{section, query.Content}}, Cache: inject.Dynamic}
	if len(rest) == 0 {
		return []Message{asked}
	}
	if f.position == settings.Prepend {
		return f.before(asked, end)
	}
	if split {
		return []Message{asked, joined(session.User, rest, inject.Dynamic)}
	}
	return []Message{f.both(asked, rest)}
}

// both joins a message and what stands behind it.
func (f *Frame) both(asked Message, rest []Piece) Message {
	asked.Pieces = f.ruled(asked.Pieces, rest)
	if len(asked.BlocksJSON) > 0 {
		asked.BlocksJSON = withText(asked.BlocksJSON, textOf(asked.Pieces[1:]))
		return asked
	}
	asked.Content = textOf(asked.Pieces)
	return asked
}

// before puts the runtime sections before a message, and what ends the prompt behind it.
func (f *Frame) before(asked Message, end []Piece) []Message {
	if len(asked.BlocksJSON) > 0 {
		var out []Message
		if len(f.body) > 0 {
			out = append(out, joined(session.User, f.body, inject.Dynamic))
		}
		out = append(out, asked)
		if len(end) > 0 {
			out = append(out, joined(session.User, end, inject.Dynamic))
		}
		return out
	}
	asked.Pieces = f.ruled(f.ruled(f.body, asked.Pieces), end)
	asked.Content = textOf(asked.Pieces)
	return []Message{asked}
}

// WithSteps is the last message where the history ends with steps that are text.
func (f *Frame) WithSteps(steps string) []Message {
	pieces := []Piece{{settings.History, steps}}
	for i, p := range f.rest() {
		if i == 0 {
			p.Text = blank + p.Text
		}
		pieces = append(pieces, p)
	}
	return []Message{joined(session.User, pieces, inject.Dynamic)}
}
