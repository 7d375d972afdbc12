package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// maxResult bounds the text of one result.
const maxResult = 8 << 20

// offer describes a tool of the server; false for one that no call could have.
func (c *client) offer(t *sdk.Tool) (tools.Offer, bool) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil || !bytes.HasPrefix(schema, []byte("{")) || len(schema) > tools.MaxSchemaBytes {
		return tools.Offer{}, false
	}
	description := text.Valid(t.Description)
	if len(description) > maxDescription {
		description = text.Valid(description[:maxDescription]) + "…"
	}
	hints := t.Annotations
	o := tools.Offer{Given: string(schema), Descriptor: tools.Descriptor{
		Name: c.Name + ":" + t.Name, Description: description, Schema: schema, Level: tools.LevelShell,
		Mutates: hints == nil || !hints.ReadOnlyHint, Category: tools.CategoryMCP,
	}}
	_, err = tools.NewRemote(o.Descriptor, nil)
	return o, err == nil
}

// call calls a tool of the server.
func (n *connected) call(ctx context.Context, name string, in tools.Input) (tools.Output, error) {
	result, err := n.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(text.CanonicalJSON(in.Args))})
	switch {
	case ctx.Err() != nil:
		return tools.Output{}, ctx.Err()
	case errors.Is(err, sdk.ErrConnectionClosed):
		return tools.Output{}, &tools.Error{Code: tools.OutcomeUnknown, Message: "Execution failed: MCP call failed: the server is gone; the tool may or may not have taken effect", Cause: err}
	case err != nil:
		return tools.Output{}, tools.Errorf(tools.Failed, "Execution failed: MCP call failed: %s", text.OneLine(err.Error()))
	}
	said := contentText(result.Content)
	switch {
	case len(said) > maxResult:
		return tools.Output{}, tools.Errorf(tools.TooLarge, "Execution failed: MCP call failed: the result of %d bytes exceeds %d", len(said), maxResult)
	case result.IsError:
		return tools.Output{}, tools.Errorf(tools.Failed, "%s", said)
	}
	return tools.Output{Values: map[string]any{outputKey: said}, ValueKey: outputKey}, nil
}

// outputKey holds a result, which is a text.
const outputKey = "output"

// contentText is what a result says: its texts, and a few words for what is none.
func contentText(content []sdk.Content) string {
	var parts []string
	for _, part := range content {
		switch part := part.(type) {
		case *sdk.TextContent:
			parts = append(parts, text.Valid(part.Text))
		case *sdk.ImageContent:
			parts = append(parts, "[image]")
		case *sdk.AudioContent:
			parts = append(parts, "[audio]")
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[resource: %s]", text.OneLine(part.URI)))
		case *sdk.EmbeddedResource:
			parts = append(parts, resourceText(part.Resource))
		}
	}
	return strings.Join(parts, "\n")
}

func resourceText(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return "[resource]"
	case r.Text != "":
		return text.Valid(r.Text)
	}
	return fmt.Sprintf("[resource: %s]", text.OneLine(r.URI))
}
