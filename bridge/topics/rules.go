package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Tasks takes tasks in.
type Tasks interface {
	Add(ctx context.Context, scope kv.Scope, task session.Task) (session.Task, error)
}

// Rules applies the rules of topics to events. Safe for concurrent use.
type Rules struct {
	tasks    Tasks
	messages Messenger
}

// NewRules returns rules that add tasks to tasks, and keep direct messages in a box.
func NewRules(tasks Tasks, box Messenger) *Rules { return &Rules{tasks, box} }

// Admit does what the topic of an event asks for, before the bus takes the event: it
// refuses what is reserved with a *ReservedError, keeps loom.v1's answers out of the
// store, adds the task that an event of the native API is, to the tasks of the
// event's source, and sends the message that it is. An event that nobody stores is no
// task. The event was checked.
func (r *Rules) Admit(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error {
	switch topic := e.Topic; {
	case topic == Status, topic == Folded, isMessages(topic):
		return &ReservedError{topic}
	case opts.Legacy:
		opts.Volatile = opts.Volatile || IsMailbox(topic)
	case topic == "agent.spawn", topic == "agent.result":
		return &ReservedError{topic}
	case topic == nodeMessage:
		return r.send(ctx, tenant, e, opts)
	case isTask(topic) && !opts.Volatile:
		return r.addTask(ctx, kv.AgentScope(tenant, e.Source), e, opts.RequestID)
	}
	return nil
}

// addTask adds the task that an event is. One that names no id gets that of the
// request, so that the same request adds it once.
func (r *Rules) addTask(ctx context.Context, scope kv.Scope, e *events.Event, requestID string) error {
	task, err := taskOf(e)
	if err != nil {
		return err
	}
	made := task.ID == "" && requestID != ""
	if made {
		task.ID = taskIDOf(e.Topic, requestID)
	}
	_, err = r.tasks.Add(ctx, scope, task)
	if made && errors.Is(err, session.ErrTaskExists) {
		return fmt.Errorf("%w: %w", kv.ErrRequestReused, err)
	}
	return err
}
