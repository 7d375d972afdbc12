package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// tool is one tool as hosts list it.
type tool struct {
	name, description string
	// properties is the inside of `properties` in the schema of its arguments, and
	// required the names that have to be there.
	properties string
	required   []string
	// reads says that it changes nothing, destroys that it may take something away, and
	// open that it may reach beyond this server.
	reads, destroys, open bool
	call                  handler
	// arguments is what they are decoded into, for the test that compares both.
	arguments any
}

// handler runs a call. Its answer is a *sdk.CallToolResult, a string, or what becomes
// JSON.
type handler func(c toolCall, arguments json.RawMessage) (any, error)

// toolCall is one call of a tool.
type toolCall struct {
	caller
	s       *Server
	request *sdk.CallToolRequest
}

// errArguments: the arguments are not what the tool's schema says.
var errArguments = errors.New("mcp: bad arguments")

// taking makes a handler of a function of decoded arguments, which were checked against
// the schema.
func taking[A any](run func(c toolCall, arguments A) (any, error)) handler {
	return func(c toolCall, raw json.RawMessage) (any, error) {
		var arguments A
		if len(raw) > 0 {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.DisallowUnknownFields()
			err := d.Decode(&arguments)
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				return nil, fmt.Errorf("%w: %s: does not take a %s", errArguments, wrong.Field, wrong.Value)
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errArguments, err)
			}
		}
		return run(c, arguments)
	}
}

// checking makes a handler take arguments as hosts write them: what the schema wants and a
// text says becomes that, and what is wrong with the rest is said by the schema.
func (t tool) checking(schema []byte) handler {
	checked, err := tools.New(tools.Descriptor{Name: t.name, Schema: schema, Level: tools.LevelFunction}, nil)
	if err != nil {
		panic(fmt.Sprintf("the schema of %s: %v", t.name, err)) // a fault in a table, which every start would show
	}
	return func(c toolCall, raw json.RawMessage) (any, error) {
		arguments, err := tools.ParseArguments(raw)
		if err == nil {
			err = checked.Check(arguments)
		}
		if bad, ok := errors.AsType[*tools.ArgumentsError](err); ok {
			return nil, fmt.Errorf("%w: %s", errArguments, bad.Detail())
		}
		if err != nil {
			return nil, err
		}
		return t.call(c, text.CanonicalJSON(arguments))
	}
}

// allTools are the tools in the order in which they are written down; hosts get them
// sorted by name.
func allTools() []tool {
	var all []tool
	for _, some := range [][]tool{memoryTools(), relationTools(), contextTools(), eventTools(), nativeTools()} {
		all = append(all, some...)
	}
	return all
}

// declared is the tool as the protocol has it.
func (t tool) declared() *sdk.Tool {
	schema := `{"type":"object","properties":{` + t.properties + `}`
	if len(t.required) > 0 {
		names, _ := json.Marshal(t.required) //nolint:errchkjson // strings
		schema += `,"required":` + string(names)
	}
	schema += `,"additionalProperties":false}`
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(schema)); err != nil {
		panic(fmt.Sprintf("the schema of %s: %v", t.name, err)) // a fault in a table, which every start would show
	}
	hints := &sdk.ToolAnnotations{ReadOnlyHint: t.reads}
	if !t.reads {
		hints.DestructiveHint = &t.destroys
	}
	if !t.open {
		hints.OpenWorldHint = new(bool)
	}
	return &sdk.Tool{Name: t.name, Description: t.description, InputSchema: json.RawMessage(compact.Bytes()), Annotations: hints}
}

// running runs a tool. What goes wrong is a result that the model can read; an error of
// the protocol is only for a call that was given up.
func (s *Server) running(run handler) sdk.ToolHandler {
	return func(ctx context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, err := run(toolCall{caller: s.callerOf(ctx, request), s: s, request: request}, request.Params.Arguments)
		switch {
		case err == nil:
			switch answer := answer.(type) {
			case *sdk.CallToolResult:
				return answer, nil
			case string:
				return textResult(answer), nil
			}
			text, err := json.Marshal(answer)
			if err != nil {
				return nil, fmt.Errorf("mcp: answer: %w", err)
			}
			return textResult(string(text)), nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errArguments):
			return failed("INVALID_REQUEST: " + err.Error()), nil
		}
		return failed(explain(err)), nil
	}
}
