package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// relay makes the tools that agents provide callable as the server's own.
type relay struct{ directory *Directory }

var _ tools.Supplier = relay{}

// Find returns the tool of an agent. One whose name no native call can have is not
// found.
func (r relay) Find(tenant, name string) (*tools.Tool, bool) {
	provided, ok := r.directory.Lookup(tenant, name)
	if !ok {
		return nil, false
	}
	d := provided.Descriptor()
	d.Schema = json.RawMessage(provided.Schema)
	t, err := tools.NewRemote(d, func(ctx context.Context, c tools.Input) (tools.Output, error) { return r.call(ctx, tenant, name, c) })
	return t, err == nil
}

// Offers yields the tools of the agents with an open stream.
func (r relay) Offers(tenant string) iter.Seq[tools.Offer] {
	return func(yield func(tools.Offer) bool) {
		for _, t := range r.directory.Tools(tenant) {
			if !yield(tools.Offer{Descriptor: t.Descriptor(), AgentID: t.AgentID, Given: t.Schema, Metadata: t.Metadata}) {
				return
			}
		}
	}
}

// Descriptor describes the tool, replacing a schema that is no JSON object, which no prompt
// could hold. The tool's effect is unknown, so it may change something.
func (t AgentTool) Descriptor() tools.Descriptor {
	d := tools.Descriptor{
		Name: text.Valid(t.Name), Description: text.Valid(t.Description), Schema: json.RawMessage(`{}`),
		Level: max(t.Level, tools.LevelFunction), RequiresApproval: t.RequiresApproval,
		Mutates: true, Category: "agent",
	}
	if t.Usable && t.Schema != "" {
		d.Schema = json.RawMessage(t.Schema)
	}
	return d
}

func (r relay) call(ctx context.Context, tenant, name string, c tools.Input) (tools.Output, error) {
	call := ToolCall{
		Name: name, Arguments: string(text.CanonicalJSON(c.Args)), CallerID: c.Scope.Owner, SessionID: c.SessionID,
	}
	if deadline, ok := ctx.Deadline(); ok {
		call.Timeout = time.Until(deadline)
	}
	result, err := r.directory.Call(ctx, tenant, call)
	gone, _ := errors.AsType[*NotConnectedError](err)
	switch {
	case gone != nil && gone.Sent:
		return tools.Output{}, &tools.Error{Code: tools.OutcomeUnknown, Message: fmt.Sprintf(lostText, gone.Agent), Cause: err}
	case gone != nil:
		return tools.Output{}, &tools.Error{Code: tools.ProviderAway, Message: fmt.Sprintf(awayText, gone.Agent), Cause: err}
	case errors.Is(err, ErrNotFound):
		return tools.Output{}, tools.Errorf(tools.NotFound, "Tool not found: %s", name)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, share.ErrExhausted):
		return tools.Output{}, err
	case err != nil:
		return tools.Output{}, tools.Errorf(tools.Failed, "Execution failed: %w", err)
	case result.Status != ResultOK:
		return tools.Output{}, &tools.Error{Code: result.Code(), Message: result.ErrorMessage}
	}
	return outputOf(result)
}

// awayText is the message of a call of a tool whose agent has gone away, or has not
// come back since the server started.
const awayText = "Execution failed: its provider %s is not attached; nothing ran"

// lostText is the message of a call whose agent went away while it ran the tool.
const lostText = "Outcome unknown: agent %s is not connected any more; the tool may or may not have taken effect"

// outputOf reads an agent's result; no text at all is null.
func outputOf(r ToolResult) (tools.Output, error) {
	given := step.Original{Form: r.Form, MediaType: r.MediaType, Data: []byte(r.Output)}
	switch {
	case given.Form == step.FormText || given.Form == step.FormBytes:
		return tools.Output{Given: given}, nil
	case r.Output == "":
		given.Data = []byte("null")
	}
	given.Form = step.FormJSON
	value, err := text.DecodeJSON(given.Data)
	if err != nil {
		return tools.Output{}, tools.Errorf(tools.Failed, "the agent answered with text that is no JSON")
	}
	if values, ok := value.(map[string]any); ok {
		return tools.Output{Values: values, Given: given}, nil
	}
	return tools.Output{Values: map[string]any{outputKey: value}, ValueKey: outputKey, Given: given}, nil
}

// outputKey holds a result that is no object.
const outputKey = "output"
