package hand

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Recorded is what a tool did that the caller ran itself.
type Recorded struct {
	// Request is the call. Its timeout is not used; the tool need not be known.
	Request
	// Output is the result, one JSON value of at most MaxOutputBytes. Default
	// null.
	Output json.RawMessage
	// Failed says that the tool failed, ErrorMessage why.
	Failed       bool
	ErrorMessage string
}

// outputKey holds a result that is no JSON object.
const outputKey = "output"

// Record adds a step for a tool that the caller ran itself, under the rules of
// Call. Unlike Call it gives an error when the step could not be recorded: those
// of Call, *InvalidError, or one of the store.
func (h *Hand) Record(ctx context.Context, r Recorded) (Answer, error) {
	if err := h.begin(); err != nil {
		return Answer{}, err
	}
	defer h.running.Done()
	c, out, err := checkRecorded(r)
	if err != nil {
		return Answer{}, err
	}
	if c.RequestID != "" {
		unlock, err := h.requests.lock(ctx, c.Scope, c.RequestID)
		if err != nil {
			return Answer{}, err
		}
		defer unlock()
		if answer, found, err := h.replay(ctx, c); found || err != nil {
			return answer, err
		}
	}
	if out.result.Body != nil {
		if out.body, err = h.takeBody(ctx, c, out.result); err != nil {
			return Answer{}, fmt.Errorf("hand: record %s: %w", c.name(), err)
		}
	}
	answer := h.record(ctx, c, out)
	return answer, answer.RecordError
}

// checkRecorded turns a report into a call and its outcome.
func checkRecorded(r Recorded) (*call, outcome, error) {
	if err := checkFields(&r.Request); err != nil {
		return nil, outcome{}, err
	}
	tool, err := tools.NewUnchecked(tools.Descriptor{Name: r.Name, Level: tools.LevelFunction}, nil)
	if err != nil {
		return nil, outcome{}, &InvalidError{"tool_name", "must be 1 to 128 letters, digits or _ : . - /"}
	}
	args, err := tools.ParseArguments(r.Args)
	if err != nil {
		return nil, outcome{}, withSchema(err, tool)
	}
	out, err := reported(r)
	if err != nil {
		return nil, outcome{}, err
	}
	c := &call{Request: r.Request, tool: tool, args: args}
	c.digest = digest(c, "record", string(r.Output), r.ErrorMessage, fmt.Sprint(r.Failed))
	return c, out, nil
}

func reported(r Recorded) (outcome, error) {
	if r.Failed {
		return outcome{failure: &tools.Error{Code: tools.Failed, Message: r.ErrorMessage}}, nil
	}
	if len(r.Output) == 0 {
		return outcome{result: tools.Result{Output: map[string]any{outputKey: nil}}}, nil
	}
	if len(r.Output) > MaxOutputBytes {
		return outcome{}, &InvalidError{outputKey, fmt.Sprintf("is longer than %d bytes", MaxOutputBytes)}
	}
	value, err := step.DecodeJSON(r.Output)
	if err != nil {
		return outcome{}, &InvalidError{outputKey, "is not one JSON value"}
	}
	values, ok := value.(map[string]any)
	if !ok {
		values = map[string]any{outputKey: value}
	}
	return outcome{result: withBody(r.Name, values)}, nil
}

// withBody takes text out of a result where the tools of this server give it as
// a body: a file that was read, and a result that is nothing but text.
func withBody(name string, values map[string]any) tools.Result {
	result := tools.Result{Output: values}
	key := outputKey
	if name == step.ToolReadFile {
		key = "content"
	}
	text, ok := values[key].(string)
	if !ok || name != step.ToolReadFile && len(values) > 1 {
		return result
	}
	delete(values, key)
	result.BodyKey = key
	result.Body = io.NopCloser(strings.NewReader(text))
	result.BodySize = int64(len(text))
	return result
}
