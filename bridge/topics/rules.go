package topics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// Tasks takes tasks in.
type Tasks interface {
	Add(ctx context.Context, scope kv.Scope, task session.Task) (session.Task, error)
}

// Rules applies the rules of topics to events. Safe for concurrent use.
type Rules struct {
	tasks    Tasks
	messages Messenger
	spawner  Spawner
	given    Given
}

// Given rules the events of tasks that clients of the Agent2Agent protocol give to agents.
type Given interface {
	Admit(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error
}

// NewRules returns rules that add tasks to tasks, keep direct messages in a box, let a spawner
// make children, and ask given about the tasks of clients.
func NewRules(tasks Tasks, box Messenger, spawner Spawner, given Given) *Rules {
	return &Rules{tasks, box, spawner, given}
}

// Admit applies the rules of an event's topic before the bus takes the event. It refuses
// reserved topics with a *ReservedError, and keeps loom.v1's answers out of the store. It
// adds a task event of the native API to the tasks of the event's source, and sends a
// message event as a message. A volatile event adds no task. The event must be checked
// already.
func (r *Rules) Admit(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error {
	// A result that comes again is no new one.
	if r.spawner != nil && e.Topic != Result {
		if err := r.spawner.Acts(ctx, kv.AgentScope(tenant, opts.EmitterOf(e))); err != nil {
			return err
		}
	}
	if writer.Of(ctx) != writer.Program && instructs(e.Topic) {
		return refuse("topic", "is "+e.Topic+", which is reserved for programs: a model's tool must emit on another topic")
	}
	if !opts.Legacy && !strings.HasPrefix(e.Topic, agentPrefix) && strings.ContainsFunc(e.Topic, unicode.IsSpace) {
		return refuse("topic", "holds a blank; words of a topic are separated by dots, as in prices.btc")
	}
	if _, _, ok := a2a.Of(e.Topic); ok {
		return r.given.Admit(ctx, tenant, e, opts)
	}
	switch topic := e.Topic; {
	case topic == Status, topic == Folded, topic == Progress && !opts.Legacy, isMessages(topic), isFamily(topic), isInterrupts(topic) && !opts.Legacy:
		return &ReservedError{topic}
	case topic == Spawn && asks(e, opts, "child_id"):
		return r.spawn(ctx, tenant, e, opts)
	case topic == Result && asks(e, opts, "parent_id"):
		return r.complete(ctx, tenant, e, opts)
	case opts.Legacy:
		opts.Volatile = opts.Volatile || IsMailbox(topic)
		return r.admitLegacy(ctx, tenant, e, opts)
	case topic == nodeMessage:
		return r.send(ctx, tenant, e, opts)
	case isTask(topic) && !opts.Volatile:
		return r.addTask(ctx, kv.AgentScope(tenant, e.Source), e, opts.RequestID)
	}
	return nil
}

// instructs reports whether what is said on a topic instructs in the prompts of who says it.
func instructs(topic string) bool { return topic == execute || topic == nodePlanning }

// asks reports whether an event asks for what its topic does. Of loom.v1 that is an object
// with a key: anything else has always passed there.
func asks(e *events.Event, opts *events.EmitOptions, key string) bool {
	var keys map[string]json.RawMessage
	return !opts.Legacy || json.Unmarshal(e.Payload, &keys) == nil && !isNull(keys[key])
}

// admitLegacy adds the task, or sends the message, that an event of loom.v1 is. A task that
// is none, or that was there before, passes as it is; a message with a fault is refused, as
// in the native API.
func (r *Rules) admitLegacy(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error {
	if opts.Volatile || !isTask(e.Topic) && e.Topic != nodeMessage || !asks(e, opts, "task_id") && !asks(e, opts, "parameters") {
		return nil
	}
	own := *e
	own.PayloadKind, own.Source = events.JSON, opts.EmitterOf(e)
	if e.Topic == nodeMessage {
		said := events.EmitOptions{}
		if err := r.send(ctx, tenant, &own, &said); err != nil {
			return err // no one would have it
		}
		*e, *opts = own, said
		return nil
	}
	err := r.addTask(ctx, kv.AgentScope(tenant, own.Source), &own, opts.RequestID)
	_, bad := errors.AsType[*invalid.Error](err)
	if bad || errors.Is(err, session.ErrTaskExists) || errors.Is(err, kv.ErrBadScope) {
		return nil
	}
	return err
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
