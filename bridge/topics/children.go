package topics

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// Spawn is the topic on which an agent spawns a child.
	Spawn = "agent.spawn"
	// Result is the topic on which a child returns its result.
	Result = "agent.result"
	// spawnSuffix and resultsSuffix end the topics on which a child hears that it was
	// spawned, and a parent of results.
	spawnSuffix   = ".spawn"
	resultsSuffix = ".results"
)

// Spawned is the topic on which a child hears that it was spawned. Only the bridge emits
// there.
func Spawned(child string) string { return agentPrefix + child + spawnSuffix }

// Results is the topic on which a parent gets the results of its children. Only the
// bridge emits there.
func Results(parent string) string { return agentPrefix + parent + resultsSuffix }

// Spawner makes children and takes their results. *children.Spawner is one.
type Spawner interface {
	Spawn(ctx context.Context, r children.Spawn) (children.Child, error)
	Complete(ctx context.Context, scope kv.Scope, r children.Result) (children.Child, error)
	// Acts is an error for an agent that does nothing any more.
	Acts(ctx context.Context, scope kv.Scope) error
}

var _ Spawner = (*children.Spawner)(nil)

// spawnRequest is the payload of an event on Spawn.
type spawnRequest struct {
	ParentID  string   `json:"parent_id,omitempty"`
	ChildID   string   `json:"child_id"`
	Goal      string   `json:"goal"`
	Tools     []string `json:"tools,omitempty"`
	TimeoutMs *int64   `json:"timeout_ms,omitempty"`
	SessionID string   `json:"session_id,omitempty"`
}

// spawnResult is the payload of an event on Result.
type spawnResult struct {
	ParentID string `json:"parent_id"`
	ChildID  string `json:"child_id"`
	Success  *bool  `json:"success"`
	Result   string `json:"result"`
	Error    string `json:"error"`
}

// Notifier is the children.Notifier that notifies children and parents by events.
type Notifier struct{ Bus *events.Bus }

var _ children.Notifier = Notifier{}

// Spawned notifies a child of its spawn.
func (t Notifier) Spawned(ctx context.Context, c *children.Child) error {
	return t.emit(ctx, c.Tenant, spawnedEvent(c), c.ID)
}

// Returned notifies a parent that its child has a result.
func (t Notifier) Returned(ctx context.Context, c *children.Child) error {
	return t.emit(ctx, c.Tenant, returnedEvent(c), c.ID)
}

// emit emits a durable event once for each child. An agent whose id fits into no topic is
// skipped.
func (t Notifier) emit(ctx context.Context, tenant string, e events.Event, child string) error {
	if e.Check() != nil {
		return nil
	}
	_, err := t.Bus.Emit(ctx, tenant, e, events.EmitOptions{RequestID: taskIDOf(e.Type, child), Own: true})
	return err
}

// spawnedEvent describes a child to itself, and nothing else of its parent.
func spawnedEvent(c *children.Child) events.Event {
	r := spawnRequest{ParentID: c.Parent, ChildID: c.ID, Goal: c.Goal, Tools: c.Tools, SessionID: c.SessionID}
	if c.Limits.Timeout > 0 {
		r.TimeoutMs = new(c.Limits.Timeout.Milliseconds())
	}
	payload, _ := json.Marshal(r) // texts and numbers are JSON
	return events.Event{Topic: Spawned(c.ID), Type: Spawn, Source: c.Parent, SessionID: c.SessionID, Payload: payload}
}

func returnedEvent(c *children.Child) events.Event {
	payload, _ := json.Marshal(spawnResult{
		ParentID: c.Parent, ChildID: c.ID, Success: &c.Result.Success, Result: c.Result.Text, Error: c.Result.Error,
	})
	return events.Event{Topic: Results(c.Parent), Type: Result, Source: c.ID, SessionID: c.ParentSession, Payload: payload}
}

// spawn makes the child that an event on Spawn asks for. The child gets it on its own
// topic; the event itself goes on to who reads Spawn.
func (r *Rules) spawn(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error {
	var asked spawnRequest
	if err := readKeys(e, &asked, "child_id", "goal"); err != nil {
		return err
	}
	parent := opts.EmitterOf(e)
	if asked.ParentID != "" && asked.ParentID != parent {
		return refuse("payload.parent_id", "is not the agent that emits")
	}
	if opts.Owns != nil && !opts.Owns(asked.ChildID) {
		return fmt.Errorf("%w: the caller may not act for the child %q", events.ErrNotOwned, asked.ChildID)
	}
	s := children.Spawn{
		Tenant: tenant, Parent: parent, ParentSession: e.SessionID, Child: asked.ChildID, Goal: asked.Goal,
		SessionID: asked.SessionID, Tools: asked.Tools, RequestID: opts.RequestID,
	}
	if asked.TimeoutMs != nil {
		const most = int64(children.MaxTimeout / time.Millisecond)
		if *asked.TimeoutMs < 0 || *asked.TimeoutMs > most {
			return refuse("payload.timeout_ms", fmt.Sprintf("must be from 0 to %d", most))
		}
		s.Limits.Timeout = new(time.Duration(*asked.TimeoutMs) * time.Millisecond)
	}
	if _, err := r.spawner.Spawn(ctx, s); err != nil {
		return inPayload(err)
	}
	pass(e, "")
	return nil
}

// complete takes the result that an event on Result is. The parent gets it on its own
// topic, and is the only one to read the event itself.
func (r *Rules) complete(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error {
	var said spawnResult
	if err := readKeys(e, &said, "parent_id"); err != nil {
		return err
	}
	child := opts.EmitterOf(e)
	if said.ChildID != "" && said.ChildID != child {
		return refuse("payload.child_id", "is not the agent that emits")
	}
	success := said.Success == nil || *said.Success
	if success && strings.TrimSpace(said.Result) == "" {
		return refuse("payload.result", "is required")
	}
	c, err := r.spawner.Complete(ctx, kv.AgentScope(tenant, child), children.Result{
		Parent: said.ParentID, Success: success, Text: said.Result, Error: said.Error,
	})
	if err != nil {
		return inPayload(err)
	}
	pass(e, c.Parent)
	return nil
}

// readerHeader names the one reader of an event on Result that was a result.
const readerHeader = "loom.reader"

// pass lets an event that did what it asks for go on to its topic: to one reader, or to all.
func pass(e *events.Event, reader string) {
	e.Headers = maps.Clone(e.Headers)
	delete(e.Headers, readerHeader)
	if reader != "" {
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers[readerHeader] = reader
	}
}

// Hears reports for each event whether an agent may read it on a topic that it may read: a
// result is the parent's alone.
func Hears(agent string) func(e *events.Event) bool {
	return func(e *events.Event) bool {
		if e.Topic != Result {
			return true
		}
		reader, ok := e.Headers[readerHeader]
		return !ok || reader == agent
	}
}

// readKeys decodes a payload into a struct, and refuses unknown keys.
func readKeys(e *events.Event, into any, required ...string) error {
	var keys map[string]json.RawMessage
	if json.Unmarshal(e.Payload, &keys) != nil || keys == nil {
		return refuse("payload", "is not a JSON object")
	}
	for _, name := range required {
		if isNull(keys[name]) {
			return refuse("payload."+name, "is required")
		}
	}
	if err := decodeStrictly(e.Payload, into); err != nil {
		return refuse("payload", "is not that of "+e.Topic+": "+err.Error())
	}
	return nil
}

// isFamily reports whether a topic is one of events about children.
func isFamily(topic string) bool { return isOwned(topic, spawnSuffix) || isOwned(topic, resultsSuffix) }

// isOwned reports whether a topic is that of an agent with an ending.
func isOwned(topic, suffix string) bool {
	return strings.HasPrefix(topic, agentPrefix) && strings.HasSuffix(topic, suffix) && len(topic) > len(agentPrefix+suffix)
}
