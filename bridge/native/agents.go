package native

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// Agents is what the tools of agents work on.
type Agents interface {
	// Prepare begins to spawn a child, whose parent's step is that of the call. ErrNotOwned
	// where the caller may not act for an agent of that id.
	Prepare(ctx context.Context, r children.Spawn) (*children.Birth, error)
	// Complete takes the result of a child.
	Complete(ctx context.Context, scope kv.Scope, r children.Result) (children.Child, error)
	// Send sends a direct message.
	Send(ctx context.Context, tenant string, m messages.Message) (messages.Message, error)
}

// ErrNotOwned: the caller may not act for an agent that it names.
var ErrNotOwned = errors.New("native: the caller may not act for that agent")

// toolSend is the tool that sends direct messages.
const toolSend = "message:send"

// agents are the tools of agents. Most agents have no agent to deal with.
type agents struct{ agents Agents }

func (a agents) tools() []tool {
	list := []tool{
		{tools.Descriptor{
			Name:        children.ToolSpawn,
			Description: "Spawn a sub-agent for a task of its own. It knows nothing but the goal. Its result comes as a later step, agent:result.",
			Schema:      json.RawMessage(spawnSchema),
		}, a.spawn, nil},
		{tools.Descriptor{
			Name:        children.ToolResult,
			Description: "Return the result of your task to the agent that spawned you. You are done then, and can do nothing more.",
			Schema:      json.RawMessage(resultSchema),
		}, a.result, nil},
		{tools.Descriptor{
			Name:        toolSend,
			Description: "Send a short message to another agent, which reads it in its next prompt.",
			Schema:      json.RawMessage(sendSchema),
		}, a.send, nil},
	}
	for i := range list {
		list[i].Level, list[i].Category, list[i].ResultKind, list[i].Mutates, list[i].ByName = tools.LevelFunction, "agent", "json", true, true
	}
	return list
}

const (
	spawnSchema = `{"type":"object","properties":{
"child_id":{"type":"string","minLength":1,"description":"New name of the sub-agent, such as research-2"},
"goal":{"type":"string","minLength":1,"description":"What it shall do, and what it has to know for that"},
"tools":{"type":"array","items":{"type":"string"},"description":"Tools that it may call (default: yours)"},
"timeout_seconds":{"type":"number","exclusiveMinimum":0,"description":"How long it may take"}},
"required":["child_id","goal"]}`
	resultSchema = `{"type":"object","properties":{
"result":{"type":"string","description":"What came of the task; all that the other agent gets"},
"error":{"type":"string","description":"Why there is no result"}}}`
	sendSchema = `{"type":"object","properties":{
"to":{"type":"string","minLength":1,"description":"Id of the agent"},
"content":{"type":"string","minLength":1,"description":"What to say, at most 1000 characters"}},
"required":["to","content"]}`
)

func (a agents) spawn(ctx context.Context, c tools.Input) (tools.Output, error) {
	r := children.Spawn{
		Tenant: c.Scope.Tenant, Parent: c.Scope.Owner, ParentSession: c.SessionID, Child: c.String("child_id", ""), Goal: c.String("goal", ""),
	}
	if names, ok := c.Args["tools"].([]any); ok {
		r.Tools = []string{}
		for _, name := range names {
			s, _ := name.(string) // the schema says that it is one
			r.Tools = append(r.Tools, s)
		}
	}
	if seconds, ok := c.Args["timeout_seconds"].(json.Number); ok {
		n, _ := seconds.Float64() // as above
		if n > children.MaxTimeout.Seconds() {
			return tools.Output{}, refuse("timeout_seconds", "is longer than 30 days")
		}
		r.Limits.Timeout = new(time.Duration(math.Ceil(n*1e6)) * time.Microsecond)
	}
	// A goal that a model wrote has no role that instructs.
	b, err := a.agents.Prepare(writer.As(ctx, writer.Model), r)
	if err != nil {
		return tools.Output{}, agentFailure(err)
	}
	return tools.Output{Values: map[string]any{"child_id": b.Child.ID, "session_id": b.Child.SessionID}, Join: b.Join}, nil
}

func (a agents) result(ctx context.Context, c tools.Input) (tools.Output, error) {
	r := children.Result{Text: c.String("result", ""), Error: c.String("error", "")}
	r.Success = r.Error == ""
	ended, err := a.agents.Complete(ctx, c.Scope, r)
	if err != nil {
		return tools.Output{}, agentFailure(err)
	}
	return tools.Output{Values: map[string]any{"parent_id": ended.Parent, "success": r.Success}}, nil
}

// send says something by the marked role that messages have: a model never chooses one that
// instructs.
func (a agents) send(ctx context.Context, c tools.Input) (tools.Output, error) {
	sent, err := a.agents.Send(ctx, c.Scope.Tenant, messages.Message{
		Source: c.Scope.Owner, Target: c.String("to", ""), Content: c.String("content", ""),
		Priority: messages.DefaultPriority, SessionID: c.SessionID,
	})
	if err != nil {
		return tools.Output{}, agentFailure(err)
	}
	return tools.Output{Values: map[string]any{"task_id": sent.TaskID, "to": sent.Target}}, nil
}

// agentFailure says for the model what went wrong between agents.
func agentFailure(err error) error {
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		field := bad.Field
		switch {
		case field == "target_agent_id":
			field = "to"
		case strings.HasPrefix(field, "limits.timeout"):
			field = "timeout_seconds"
		}
		return refuse(field, bad.Problem)
	}
	switch {
	case errors.Is(err, children.ErrExists):
		return wrapped(tools.Failed, "The child_id is in use; choose another one", err)
	case errors.Is(err, children.ErrDepth):
		return wrapped(tools.PermissionDenied, "Permission denied: this agent is as deep as one may be, and can have no sub-agents", err)
	case errors.Is(err, children.ErrTooMany):
		return wrapped(tools.Failed, "Too many sub-agents at once; wait until one has returned", err)
	case errors.Is(err, children.ErrNotChild):
		return wrapped(tools.PermissionDenied, "Permission denied: this agent was not spawned, so it has no parent to return a result to", err)
	case errors.Is(err, children.ErrEnded):
		return wrapped(tools.Failed, "This agent has ended", err)
	case errors.Is(err, ErrNotOwned):
		return wrapped(tools.PermissionDenied, "Permission denied: the caller may not act for an agent of that child_id", err)
	}
	return err
}
