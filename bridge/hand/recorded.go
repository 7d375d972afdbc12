package hand

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Recorded is what a tool did that the caller ran itself.
type Recorded struct {
	// Request is the call. Its timeout is not used; the tool need not be known.
	Request
	// Output is the result, one JSON value of at most MaxOutputBytes. It may be
	// there after a failure, too. Default null.
	Output json.RawMessage
	// Failed says that the tool failed, ErrorMessage why.
	Failed       bool
	ErrorMessage string
	// Task is what the step did, added to the log in the same commit, under the
	// rules of session.Log.StageTask. Its SessionID is that of the call. Default:
	// none.
	Task *session.Task
}

// outputKey holds a result that is no JSON object.
const outputKey = "output"

// Record adds a step for a tool that the caller ran itself, under the rules of
// Call. Unlike Call it gives an error when the step could not be recorded: those
// of Call, *InvalidError, session.ErrTaskExists, or one of the store. The answer has no Output, for the
// caller has it.
func (h *Hand) Record(ctx context.Context, r Recorded) (Answer, error) {
	if err := h.begin(); err != nil {
		return Answer{}, err
	}
	defer h.running.Done()
	c, out, err := h.checkRecorded(r)
	if err != nil {
		return Answer{}, err
	}
	if c.RequestID != "" {
		unlock, err := h.requests.lock(ctx, c.Scope, c.RequestID)
		if err != nil {
			return Answer{}, err
		}
		defer unlock()
		// A report changes nothing before it is committed, and the commit looks
		// for the first answer. Looking for it here would cost more than it saves.
	}
	if out.result.BodyKey != "" {
		out.body = h.takeText(ctx, c, out.text)
	}
	answer := h.record(ctx, c, out)
	return answer, answer.RecordError
}

// checkRecorded turns a report into a call and its outcome.
func (h *Hand) checkRecorded(r Recorded) (*call, outcome, error) {
	if err := checkFields(&r.Request); err != nil {
		return nil, outcome{}, err
	}
	tool, err := tools.NewUnchecked(tools.Descriptor{Name: h.toolName(r.Request), Level: tools.LevelFunction}, nil)
	if err != nil {
		return nil, outcome{}, &InvalidError{"tool_name", "must be 1 to 128 letters, digits or _ : . - /"}
	}
	args, err := tools.ParseArguments(r.Args)
	if err != nil {
		return nil, outcome{}, withSchema(err, tool)
	}
	out, err := reported(r, tool.Descriptor().Name)
	if err != nil {
		return nil, outcome{}, err
	}
	c := &call{Request: r.Request, tool: tool, args: args, reported: true}
	more := [][]byte{r.Output, []byte(r.ErrorMessage), fmt.Append(nil, r.Failed)}
	if r.Task != nil {
		task := *r.Task
		task.SessionID = r.SessionID
		if err := task.Check(); err != nil {
			return nil, outcome{}, fmt.Errorf("hand: task: %w", err)
		}
		c.task, more = &task, append(more, task.Content())
	}
	if c.RequestID != "" {
		c.digest = digest(c, "record", more...)
	}
	return c, out, nil
}

// toolName is the tool that a name means: as in Call where there is one, and else
// by the rules for steps.
func (h *Hand) toolName(req Request) string {
	if tool, err := h.lookup(req); err == nil {
		return tool.Descriptor().Name
	}
	return h.Reducer.ToolName(req.Name)
}

// reported is what a caller's own tool did.
func reported(r Recorded, tool string) (outcome, error) {
	out := outcome{}
	if r.Failed {
		out.failure = &tools.Error{Code: tools.Failed, Message: r.ErrorMessage}
	}
	if len(r.Output) > MaxOutputBytes {
		return outcome{}, &InvalidError{outputKey, fmt.Sprintf("is longer than %d bytes", MaxOutputBytes)}
	}
	if len(r.Output) == 0 {
		if !r.Failed {
			out.result.Output = map[string]any{outputKey: nil}
		}
		return out, nil
	}
	value, err := step.DecodeJSON(r.Output)
	if err != nil {
		return outcome{}, &InvalidError{outputKey, "is not one JSON value"}
	}
	values, ok := value.(map[string]any)
	if !ok {
		values = map[string]any{outputKey: value}
		if value == nil && r.Failed {
			values = nil
		}
	}
	out.takeBody(tool, values)
	return out, nil
}

// takeBody takes text out of a result where the tools of this server give it as
// a body: a file that was read, and a result that is nothing but text.
func (out *outcome) takeBody(name string, values map[string]any) {
	out.result.Output = values
	key := outputKey
	if name == step.ToolReadFile {
		key = "content"
	}
	text, ok := values[key].(string)
	if !ok || name != step.ToolReadFile && len(values) > 1 {
		return
	}
	delete(values, key)
	out.result.BodyKey, out.text = key, text
}

// takeText makes a blob of a text. Nothing leads to it until the step does.
func (h *Hand) takeText(ctx context.Context, c *call, text string) body {
	b := body{size: int64(len(text)), head: []byte(text)}
	stored, err := h.Blobs.Add(ctx, c.Scope, b.head)
	if err != nil {
		b.uploadErr = err
		return b
	}
	b.stored, b.lines, b.sha256, b.binary = &stored, stored.Lines, stored.Ref(), stored.Binary
	return b
}
