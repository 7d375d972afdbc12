package a2a

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// The types of the events of a task.
const (
	// Message is what its giver says.
	Message = "a2a.message"
	// Working says that the agent is at work, and perhaps with what; Artifact is a part of
	// the result.
	Working  = "a2a.working"
	Artifact = "a2a.artifact"
	// InputRequired and AuthRequired end a turn: the agent waits for another message.
	InputRequired = "a2a.input_required"
	AuthRequired  = "a2a.auth_required"
	// Completed, Failed, Rejected and Canceled end the task. An event without a type is
	// Completed, or Failed if it has HeaderError.
	Completed = "a2a.completed"
	Failed    = "a2a.failed"
	Rejected  = "a2a.rejected"
	Canceled  = "a2a.canceled"
	// Answer ends a task that is no more than one message and this answer to it.
	Answer = "a2a.answer"
)

// Submitted is the state of a task whose agent has said nothing yet. The other states are the
// types of events.
const Submitted = "a2a.submitted"

// HeaderError is the header of a reply that says why there is no answer.
const HeaderError = "error"

// headersOfTurn name the message that an event answers; the first one present counts.
func headersOfTurn() []string { return []string{"loom.correlation_id", "correlation_id"} }

// Limits of a task. An event that ends a turn is always taken.
const (
	// MaxEvents bounds its events.
	MaxEvents = 1000
	// MaxBytes bounds what they hold together.
	MaxBytes = 2 << 20
)

// Errors of tasks.
var (
	// ErrInvalid: an event is none of a task's.
	ErrInvalid = errors.New("a2a: invalid event of a task")
	// ErrNotFound: there is no such task.
	ErrNotFound = errors.New("a2a: no such task")
	// ErrClosed: the turn or the task has ended, so that nothing more can be said to it.
	ErrClosed = errors.New("a2a: the task takes no such event any more: it has ended, or waits for another message")
	// ErrFull: the task is as large as it may be.
	ErrFull = errors.New("a2a: the task is as large as it may be")
)

const (
	prefix = "agent."
	within = ".a2a."
)

// Topic is where a task of an agent is; `*` in place of the task stands for all of them.
func Topic(agent, task string) string { return prefix + agent + within + task }

// Of is the agent and the task of a topic; false for a topic that is none of a task.
func Of(topic string) (agent, task string, ok bool) {
	rest, ok := strings.CutPrefix(topic, prefix)
	at := strings.LastIndex(rest, within)
	if !ok || at < 1 {
		return "", "", false
	}
	agent, task = rest[:at], rest[at+len(within):]
	return agent, task, task != "" && !strings.Contains(task, ".")
}

// Ends reports whether a state is that of a task which has ended.
func Ends(state string) bool {
	return slices.Contains([]string{Completed, Failed, Rejected, Canceled, Answer}, state)
}

// Closes reports whether a state is that of a task which waits for its giver, or has ended.
func Closes(state string) bool {
	return state == InputRequired || state == AuthRequired || Ends(state)
}

// Task is a task as its events say it.
type Task struct {
	// Agent has the task, and ID names it.
	Agent, ID string
	// Giver is the agent that gave it, and Context the session of its first message.
	Giver, Context string
	// State is Submitted, or the type of the event by which it is as it is.
	State string
	// Updated is when the last of its events was taken.
	Updated time.Time
	// Events are those that count, in order.
	Events []events.Event
	// Last is the sequence of the last event, whether it counts or not.
	Last uint64

	turn  string // the id of the last message
	since uint64 // the sequence of the last event that closed a turn
	bytes int
}

// Take adds the next event of the topic, and reports whether it counts.
func (t *Task) Take(e *events.Event) bool {
	t.Last = e.Sequence
	if t.check(e, e.Source) != nil {
		return false
	}
	if len(t.Events) == 0 {
		t.Giver, t.Context = e.Source, cmp.Or(e.SessionID, t.ID)
	}
	t.Events, t.bytes, t.Updated = append(t.Events, *e), t.bytes+e.Size(), e.Time
	switch kind := e.Type; {
	case kind == Message:
		if t.turn = e.ID; t.State != Working {
			t.State = Submitted
		}
	case Closes(kind):
		t.State, t.since = kind, e.Sequence
	default:
		t.State = Working
	}
	return true
}

// At is the task as it was with its events up to a sequence.
func (t *Task) At(sequence uint64) *Task {
	then := &Task{Agent: t.Agent, ID: t.ID, State: Submitted}
	for i := range t.Events {
		if t.Events[i].Sequence <= sequence {
			then.Take(&t.Events[i])
		}
	}
	return then
}

// Waits reports whether a message waits for its answer.
func (t *Task) Waits(message *events.Event) bool {
	return !Closes(t.State) && message.Sequence > t.since
}

// check refuses an event that the task does not take from an emitter.
func (t *Task) check(e *events.Event, emitter string) error {
	switch kind := e.Type; {
	case kind == Message && len(t.Events) == 0:
		return nil
	case len(t.Events) == 0:
		return ErrNotFound
	case Ends(t.State):
		return ErrClosed
	case kind == Message && emitter == t.Giver:
		return t.room()
	case kind == Canceled && (emitter == t.Giver || emitter == t.Agent):
		return nil
	case emitter != t.Agent:
		return invalid.Field(ErrInvalid, "agent_id", "is neither the agent of the task nor who gave it")
	case kind != Working && kind != Artifact && !Closes(kind):
		return invalid.Field(ErrInvalid, "type", "is none of a task's events, such as %s", Artifact)
	case Closes(t.State) || !t.answers(e):
		return ErrClosed
	case kind == Answer && t.State != Submitted:
		return invalid.Field(ErrInvalid, "type", "answers a message alone: the task has begun")
	case Closes(kind):
		return nil
	}
	return t.room()
}

// answers reports whether an event says nothing of a turn, or is of the present one.
func (t *Task) answers(e *events.Event) bool {
	for _, name := range headersOfTurn() {
		if of := e.Headers[name]; of != "" {
			return of == t.turn
		}
	}
	return true
}

// room refuses an event of a task that is as large as it may be.
func (t *Task) room() error {
	switch {
	case len(t.Events) >= MaxEvents:
		return fmt.Errorf("%w: %d events", ErrFull, MaxEvents)
	case t.bytes >= MaxBytes:
		return fmt.Errorf("%w: %d bytes", ErrFull, MaxBytes)
	}
	return nil
}
