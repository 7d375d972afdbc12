package topics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// interruptsSuffix ends the topic on which an agent hears that it should stop and look.
const interruptsSuffix = ".interrupts"

// Interrupts is the topic on which an agent gets urgent events. Only the bridge emits
// there.
func Interrupts(agent string) string { return agentPrefix + agent + interruptsSuffix }

func isInterrupts(topic string) bool {
	return strings.HasPrefix(topic, agentPrefix) && strings.HasSuffix(topic, interruptsSuffix)
}

// Emitter emits events. *events.Bus is one.
type Emitter interface {
	Emit(ctx context.Context, tenant string, e events.Event, opts events.EmitOptions) (events.Event, error)
}

// Signals takes in what happened elsewhere, and notifies agents at once of urgent events. Safe
// for concurrent use.
type Signals struct {
	Log *session.Log
	Bus Emitter
	// Told is called for each agent that was notified. It must not block.
	// Default nil.
	Told func()
}

// Update changes what an agent is at, as session.Log does. An urgent signal that waits then
// goes to the agent's topic, too, if it has a listener.
func (s Signals) Update(ctx context.Context, scope kv.Scope, sessionID string, u session.WorkingUpdate) (working.Working, error) {
	w, err := s.Log.UpdateWorking(ctx, scope, sessionID, u)
	if err != nil {
		return w, err
	}
	for _, e := range w.Risks() {
		for i := range u.Change.Signals {
			if u.Change.Signals[i].ID == e.ID {
				s.emit(ctx, scope, sessionID, e)
				break
			}
		}
	}
	return w, nil
}

// emit emits a volatile event. An event without a reader is no error: the next prompt shows
// it.
func (s Signals) emit(ctx context.Context, scope kv.Scope, sessionID string, e working.Event) {
	event := events.Event{Topic: Interrupts(scope.Owner), Type: "interrupt", Source: scope.Owner, SessionID: sessionID}
	event.Payload, _ = json.Marshal(map[string]string{ // texts are JSON
		"session_id": sessionID, "event_id": e.ID, "type": e.Type, "summary": e.Summary, "urgency": e.Urgency.String(),
	})
	_, _ = s.Bus.Emit(ctx, scope.Tenant, event, events.EmitOptions{Volatile: true, Own: true})
	if s.Told != nil {
		s.Told()
	}
}

// Beat notes a heartbeat of an agent with what it saw, and reports whether an interrupt is
// asked for. One without signals is kept only where the agent notes anything at all. A
// signal that breaks a rule is an *invalid.Error, and stops none of the others.
func (s Signals) Beat(ctx context.Context, scope kv.Scope, sessionID string, signals []working.Signal) (interrupt bool, err error) {
	var good []working.Signal
	var bad error
	for i := range signals {
		one := working.Change{Signals: signals[i : i+1]}
		if err := one.Check(); err == nil {
			good = append(good, signals[i])
		} else if e, ok := errors.AsType[*invalid.Error](err); ok && bad == nil {
			bad = invalid.Field(working.ErrInvalid, strings.Replace(e.Field, "[0]", fmt.Sprintf("[%d]", i), 1), "%s", e.Problem)
		}
	}
	w, err := s.Log.Working(ctx, scope, sessionID)
	if err == nil && (!w.Empty() || len(good) > 0) {
		w, err = s.Update(ctx, scope, sessionID, session.WorkingUpdate{Change: working.Change{Beat: true, Signals: good}})
	}
	return w.Interrupt(), errors.Join(err, bad)
}
