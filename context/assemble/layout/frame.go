package layout

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// goalPrefix stands before the goal in its own line.
const goalPrefix = "Goal: "

// Piece is a part of a message's text that a section owns.
type Piece struct {
	// Section is the name of the section.
	Section string
	// Text is what it says there, with what separates it from the piece before.
	Text string
}

// Message is a message of a frame.
type Message struct {
	session.Message
	// Pieces make up its content, in order. A message of one section has one.
	Pieces []Piece
	// Cache is the shortest-lived cache class of its pieces.
	Cache inject.Cache
}

// Frame is a prompt without its history and its tools.
type Frame struct {
	table Table
	// Before stand before the history, After behind it and before the last message.
	Before, After []Message
	// body are the runtime sections of the last message, in order; end is what ends it.
	body []Piece
	end  []Piece
	// goal is the whole goal where it stands in the place of the newest message.
	goal     string
	position settings.Position
}

// New arranges a prompt. goal is the whole goal, which a table with a GoalBlock shows
// only where the section `goal` does not have room for it.
func New(t Table, p *inject.Prepared, goal string) Frame {
	f, a := Frame{table: t, position: p.Position}, &p.Arranged
	f.position = cmp.Or(f.position, t.Position)
	if t.Varies {
		f.table.Rule = separator(p)
	}
	f.system(a)
	f.Before = append(f.Before, workingSecond(a)...)
	tasks, others := conversation(a)
	context := contextMessage(a)
	if t.TasksFirst {
		f.Before = append(f.Before, tasks...)
	}
	if !t.ContextLast {
		f.Before = append(f.Before, context...)
		f.Before = append(f.Before, others...)
	} else {
		f.After = append(f.After, context...)
		f.After = append(f.After, others...)
	}
	if !t.TasksFirst {
		f.After = append(f.After, tasks...)
	}
	f.last(a, goal)
	return f
}

// Forked is the section of what a fork takes over from its parent.
const Forked = "fork"

// Fork makes the frame begin with the messages of an earlier prompt, word for word, in
// place of the system message. Other parts before the history then follow those messages.
func (f *Frame) Fork(said []session.Message) {
	own := slices.DeleteFunc(f.Before, func(m Message) bool { return m.Role == session.System })
	f.After = slices.Concat(own, f.After)
	f.Before = make([]Message, len(said))
	for i := range said {
		f.Before[i] = Message{Message: said[i], Pieces: []Piece{{Forked, said[i].Content}}, Cache: inject.Stable}
	}
}

// separator is what stands between the query and the runtime sections in this turn.
func separator(p *inject.Prepared) string {
	const end = "."
	return strings.TrimSuffix(strings.TrimPrefix(p.Forms.Join(end, end), end), end)
}

// system makes the system message, and the examples behind it.
func (f *Frame) system(a *inject.Arranged) {
	if pieces, cache := piecesOf(a, inject.System, false); len(pieces) > 0 {
		f.Before = append(f.Before, joined(session.System, pieces, cache))
	}
	for i := range a.Pieces {
		if p := &a.Pieces[i]; p.Phase == inject.System {
			f.Before = append(f.Before, own(p)...)
		}
	}
}

// piecesOf returns the texts of a phase: the ones marked Last, or the others.
func piecesOf(a *inject.Arranged, phase inject.Phase, last bool) (pieces []Piece, cache inject.Cache) {
	cache = inject.Stable
	for i := range a.Pieces {
		p := &a.Pieces[i]
		if standing(p) != phase || p.Last != last || p.Shown == "" || isSecond(p) {
			continue
		}
		text := p.Shown
		if len(pieces) > 0 {
			text = blank + text
		}
		pieces = append(pieces, Piece{p.Name, text})
		cache = max(cache, p.Cache)
		if p.Cache == 0 {
			cache = inject.Dynamic
		}
	}
	return pieces, cache
}

// standing is the phase in which a text stands: what may not instruct is no part of the
// system message, whatever it asks for.
func standing(p *inject.Piece) inject.Phase {
	if p.Phase == inject.System && !p.Instructs() {
		return inject.UserContext
	}
	return p.Phase
}

// isSecond reports whether a piece is the working state right behind the system message.
func isSecond(p *inject.Piece) bool {
	return p.Name == settings.Working && p.Phase == inject.UserContext
}

// workingSecond is the working state where it stands right behind the system message.
func workingSecond(a *inject.Arranged) []Message {
	for i := range a.Pieces {
		if p := &a.Pieces[i]; isSecond(p) && p.Shown != "" {
			return []Message{joined(session.User, []Piece{{p.Name, p.Shown}}, inject.Dynamic)}
		}
	}
	return nil
}

// own returns the messages of a section that consists of messages.
func own(p *inject.Piece) []Message {
	var out []Message
	cache := p.Cache
	cache = cmp.Or(cache, inject.Dynamic)
	for _, m := range p.ShownMessages() {
		if (m.Role == session.System || m.Role == session.Developer) && !p.MayInstruct() {
			m.Role = session.User
		}
		out = append(out, Message{Message: m, Pieces: []Piece{{p.Name, m.Content}}, Cache: cache})
	}
	return out
}

// conversation are the messages of sections that are part of the conversation: tasks,
// events and direct messages, and the others.
func conversation(a *inject.Arranged) (tasks, others []Message) {
	recent := []string{settings.Messages, settings.Tasks, settings.Events}
	for i := range a.Pieces {
		p := &a.Pieces[i]
		switch {
		case p.Phase == inject.System:
		case slices.Contains(recent, p.Name):
			tasks = append(tasks, own(p)...)
		default:
			others = append(others, own(p)...)
		}
	}
	return tasks, others
}

// contextMessage describes the user and the task.
func contextMessage(a *inject.Arranged) []Message {
	pieces, cache := piecesOf(a, inject.UserContext, false)
	if len(pieces) == 0 {
		return nil
	}
	return []Message{joined(session.User, pieces, cache)}
}

func joined(role session.Role, pieces []Piece, cache inject.Cache) Message {
	return Message{Message: session.Message{Role: role, Content: textOf(pieces)}, Pieces: pieces, Cache: cache}
}

// Join is two messages of one role as one, with a blank line between them.
func Join(first, second Message) Message {
	pieces := slices.Concat(first.Pieces, second.Pieces)
	pieces[len(first.Pieces)].Text = blank + pieces[len(first.Pieces)].Text
	return joined(first.Role, pieces, max(first.Cache, second.Cache))
}

func textOf(pieces []Piece) string {
	var b strings.Builder
	for i := range pieces {
		b.WriteString(pieces[i].Text)
	}
	return b.String()
}

// last keeps what the last message is made of.
func (f *Frame) last(a *inject.Arranged, goal string) {
	f.body, _ = piecesOf(a, inject.Runtime, false)
	switch f.table.Goal {
	case GoalBlock:
		f.end, _ = piecesOf(a, inject.Runtime, true)
		if goal != "" && len(f.end) > 0 && !strings.Contains(textOf(f.end), guard.Inline(text.OneLine(goal))) {
			f.goal = goal
		}
	case GoalLine:
		if goal != "" {
			f.end = []Piece{{settings.Goal, goalPrefix + goal}}
		}
	case GoalTask:
		f.goal = goal
	}
}
