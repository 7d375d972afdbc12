package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// maxProgressText bounds what a server says of its progress.
const maxProgressText = 1 << 10

// offer is a tool of the server; false for one that no call could have.
func (c *client) offer(t *sdk.Tool) (serverTool, bool) {
	schema, err := json.Marshal(t.InputSchema)
	mask := c.set.opts.Secrets.For(c.tenant)
	schema = mask.JSON(schema)
	if err != nil || !bytes.HasPrefix(schema, []byte("{")) || len(schema) > tools.MaxSchemaBytes {
		return serverTool{}, false
	}
	if schema, ok := cleanedSchema(schema); ok {
		name := t.Name
		// What a server says of itself is no reason to be less careful with it: its readOnlyHint
		// is not taken.
		own, ok := c.describe(tools.Descriptor{Name: c.Name + ":" + name, Description: cleaned(mask.Text(t.Description)), Schema: schema, Mutates: true},
			func(ctx context.Context, n *connected, in tools.Input) (tools.Output, error) {
				params := &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(text.CanonicalJSON(in.Args))}
				if in.Report != nil {
					token, end := n.calls.begin(in.Report)
					defer end()
					params.SetProgressToken(token)
				}
				result, err := n.session.CallTool(ctx, params)
				if err != nil {
					return tools.Output{}, failed(ctx, err)
				}
				return outputOf(result)
			})
		own.said = saidOf(t)
		return own, ok
	}
	return serverTool{}, false
}

// describe makes a tool; false for one that can't be called.
func (c *client) describe(d tools.Descriptor, run func(ctx context.Context, n *connected, in tools.Input) (tools.Output, error)) (serverTool, bool) {
	d.Level, d.Category = tools.LevelShell, tools.CategoryMCP
	d.Workspace = c.Command != "" // the program runs in a folder of this server
	d.Description = text.Valid(d.Description)
	if len(d.Description) > maxDescription {
		d.Description = text.Head(d.Description, maxDescription) + "…"
	}
	_, err := tools.NewRemote(d, nil)
	return serverTool{offer: tools.Offer{Descriptor: d, Given: string(d.Schema)}, run: run}, err == nil
}

// calls are those in flight whose progress somebody wants to hear.
type calls struct {
	mu     sync.Mutex
	last   int64                          // guarded by mu
	report map[int64]func(tools.Progress) // guarded by mu
}

func newCalls() *calls { return &calls{report: map[int64]func(tools.Progress){}} }

// begin returns the token of a call that ends with end.
func (c *calls) begin(report func(tools.Progress)) (token int64, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	token = c.last
	c.report[token] = report
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.report, token)
	}
}

// progress passes on what a server says of a call.
func (c *calls) progress(p *sdk.ProgressNotificationParams) {
	token, ok := p.ProgressToken.(float64) // as JSON has it
	if !ok {
		return
	}
	c.mu.Lock()
	report := c.report[int64(token)]
	c.mu.Unlock()
	if report != nil {
		report(tools.Progress{Done: p.Progress, Total: p.Total, Message: text.Head(text.Valid(p.Message), maxProgressText)})
	}
}

// failed is the error of a request that got no answer.
func failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sdk.ErrConnectionClosed):
		return &tools.Error{Code: tools.OutcomeUnknown, Message: callFailed + "the server is gone; the tool may or may not have taken effect", Cause: err}
	}
	return tools.Errorf(tools.Failed, callFailed+"%s", text.Head(text.OneLine(text.Valid(err.Error())), maxDescription))
}

// callFailed begins what is said of a call that failed.
const callFailed = "Execution failed: MCP call failed: "

// further are the tools by which resources and prompts of the server are reached, if it
// has any.
func (c *client) further(session *sdk.ClientSession) (list []serverTool) {
	about := session.InitializeResult()
	if about == nil || about.Capabilities == nil {
		return nil
	}
	add := func(name, description, schema string, run func(ctx context.Context, n *connected, in tools.Input) (tools.Output, error)) {
		d := tools.Descriptor{Name: c.Name + ":" + name, Description: fmt.Sprintf(description, c.Name), Schema: json.RawMessage(schema)}
		if t, ok := c.describe(d, run); ok && c.set.opts.Takes(d.Name) {
			list = append(list, t)
		}
	}
	if about.Capabilities.Resources != nil {
		add("resources/list", "List the resources of the server %s, and the templates of their addresses.", cursorSchema, listResources)
		add("resources/read", "Read a resource of the server %s by its address.", uriSchema, readResource)
	}
	if about.Capabilities.Prompts != nil {
		add("prompts/list", "List the prompts of the server %s.", cursorSchema, listPrompts)
		add("prompts/get", "Get a prompt of the server %s by its name, with its arguments filled in.", promptSchema, getPrompt)
	}
	return list
}

// The schemas of these tools.
const (
	cursorSchema = `{"type":"object","properties":{"cursor":{"type":"string","description":"Where to go on: next_cursor of the last answer"}}}`
	uriSchema    = `{"type":"object","properties":{"uri":{"type":"string","description":"Address of the resource"}},"required":["uri"]}`
	promptSchema = `{"type":"object","properties":{"name":{"type":"string","description":"Name of the prompt"},"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"Its arguments, as texts"}},"required":["name"]}`
)

// listResources lists resources, and with the first of them the templates.
func listResources(ctx context.Context, n *connected, in tools.Input) (tools.Output, error) {
	cursor := in.String("cursor", "")
	list, err := n.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
	if err != nil {
		return tools.Output{}, failed(ctx, err)
	}
	out := map[string]any{"resources": list.Resources, "next_cursor": list.NextCursor}
	if cursor == "" {
		if templates, err := n.session.ListResourceTemplates(ctx, nil); err == nil { // a server need not have any
			out["templates"] = templates.ResourceTemplates
		}
	}
	return valueOutput(out)
}

// readResource gives what a resource holds, as a tool gives it.
func readResource(ctx context.Context, n *connected, in tools.Input) (tools.Output, error) {
	read, err := n.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: in.String("uri", "")})
	if err != nil {
		return tools.Output{}, failed(ctx, err)
	}
	result := &sdk.CallToolResult{}
	for _, part := range read.Contents {
		result.Content = append(result.Content, &sdk.EmbeddedResource{Resource: part})
	}
	return outputOf(result)
}

func listPrompts(ctx context.Context, n *connected, in tools.Input) (tools.Output, error) {
	list, err := n.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: in.String("cursor", "")})
	if err != nil {
		return tools.Output{}, failed(ctx, err)
	}
	return valueOutput(map[string]any{"prompts": list.Prompts, "next_cursor": list.NextCursor})
}

func getPrompt(ctx context.Context, n *connected, in tools.Input) (tools.Output, error) {
	given := map[string]string{}
	if all, ok := in.Args["arguments"].(map[string]any); ok {
		for name, value := range all {
			given[name] = fmt.Sprint(value)
		}
	}
	got, err := n.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: in.String("name", ""), Arguments: given})
	if err != nil {
		return tools.Output{}, failed(ctx, err)
	}
	return valueOutput(map[string]any{"description": got.Description, "messages": got.Messages})
}
