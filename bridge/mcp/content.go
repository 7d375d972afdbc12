package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// maxResult bounds the text of one result.
const maxResult = 8 << 20

// outputKey holds a result, which is a text.
const outputKey = "output"

// outputOf is the result of a tool: a text where it is nothing else, or else all of it, with
// its images and other bytes, which steps keep and describe by type and size.
func outputOf(result *sdk.CallToolResult) (tools.Output, error) {
	said, plain := contentText(result.Content)
	switch {
	case len(said) > maxResult:
		return tools.Output{}, tools.Errorf(tools.TooLarge, callFailed+"the result of %d bytes exceeds %d", len(said), maxResult)
	case result.IsError:
		return tools.Output{}, tools.Errorf(tools.Failed, "%s", said)
	case plain && result.StructuredContent == nil:
		return tools.Output{Values: map[string]any{outputKey: said}, ValueKey: outputKey}, nil
	}
	whole := map[string]any{"content": result.Content}
	if result.StructuredContent != nil {
		whole["structuredContent"] = result.StructuredContent
	}
	out, err := valueOutput(whole)
	out.Brief = said
	return out, err
}

// valueOutput is a result that is any value.
func valueOutput(value any) (tools.Output, error) {
	exact, err := json.Marshal(value)
	if err != nil {
		return tools.Output{}, tools.Errorf(tools.Failed, callFailed+"the result is no JSON: %w", err)
	}
	decoded, err := text.DecodeJSON(exact)
	values, ok := decoded.(map[string]any)
	if err != nil || !ok {
		return tools.Output{}, tools.Errorf(tools.Failed, callFailed+"the result is no JSON object")
	}
	return tools.Output{Values: values, Given: step.Original{Form: step.FormJSON, Data: exact}}, nil
}

// contentText is what a result says: its texts, and a few words for other content. It reports
// whether there is nothing but texts.
func contentText(content []sdk.Content) (said string, plain bool) {
	var parts []string
	plain = true
	for _, part := range content {
		switch part := part.(type) {
		case *sdk.TextContent:
			parts = append(parts, text.Valid(part.Text))
			continue
		case *sdk.ImageContent:
			parts = append(parts, "[image]")
		case *sdk.AudioContent:
			parts = append(parts, "[audio]")
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[resource: %s]", text.OneLine(text.Valid(part.URI))))
		case *sdk.EmbeddedResource:
			parts = append(parts, resourceText(part.Resource))
		}
		plain = false
	}
	return strings.Join(parts, "\n"), plain
}

func resourceText(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return "[resource]"
	case r.Text != "":
		return text.Valid(r.Text)
	}
	return fmt.Sprintf("[resource: %s]", text.OneLine(text.Valid(r.URI)))
}
