package hand

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// Recorded is what a tool did that the caller ran itself.
type Recorded struct {
	// Request is the call. Its timeout is not used; the tool need not be known.
	Request
	// Output is the result as the tool gave it, at most MaxOutputBytes. It may be
	// there after a failure, too. Default: none.
	Output step.Original
	// Body is a result that may be longer, at most Options.MaxResultBytes: what is
	// read from it takes the place of Output.Data. Whether that is JSON is not
	// checked then. Record reads it and does not close it. Default: none.
	Body io.Reader
	// Failed says that the tool failed, ErrorMessage why.
	Failed       bool
	ErrorMessage string
	// Refused says that the tool was not run at all. It has failed then.
	Refused bool
	// Task is what the step did, added to the log in the same commit, under the
	// rules of session.Log.StageTask. Its SessionID is that of the call. Default:
	// none.
	Task *session.Task
	// Join is committed with the step. Default: nothing is.
	Join *tools.Join
	// Exempt says that the bridge itself reports it, whatever the agent's Bounds are.
	Exempt bool
}

// outputKey holds a result that is no JSON object.
const outputKey = "output"

// Record adds a step for a tool that the caller ran itself, under the rules of
// Call. Unlike Call it gives an error when the step could not be recorded: those
// of Call, *invalid.Error, session.ErrTaskExists, one of reading Body, or one of
// the store. The answer has no Output, for the caller has it.
func (h *Hand) Record(ctx context.Context, r Recorded) (Answer, error) {
	if err := h.begin(); err != nil {
		return Answer{}, err
	}
	defer h.running.Done()
	c, out, err := h.checkRecorded(&r)
	if err != nil {
		return Answer{}, err
	}
	first, read := ctx, func() {}
	if r.Body == nil { // otherwise a view would be too old by then
		ctx = kv.Remembering(ctx)
		first, read = kv.Ahead(ctx, h.Engine, func(along *kv.Reads) {
			h.Blobs.Foresee(along, c.Scope)
			h.ForeseeBounds(along, c.Scope)
			h.Log.ForeseeConfig(along, c.Scope, c.SessionID)
		})
	}
	defer read()
	if err := h.takeGiven(first, c, &r, &out); err != nil {
		return Answer{}, err
	}
	if c.once = c.RequestID; c.once != "" {
		c.digest = recordedDigest(c, &r, &out)
		unlock, err := h.requests.lock(ctx, c.Scope, c.RequestID)
		if err != nil {
			return Answer{}, err
		}
		defer unlock()
		// A report changes nothing before it is committed, and the commit looks
		// for the first answer. Looking for it here would cost more than it saves.
	}
	free, err := h.bound(first, c)
	if err == nil {
		h.observed(first, c)
	}
	read()
	if err != nil {
		if first, found, errReplay := h.replay(ctx, c); found && errReplay == nil {
			return first, nil
		}
		return Answer{}, err
	}
	out.result.Join = r.Join
	answer := h.record(ctx, c, out)
	free(answer.Recorded && !answer.Replayed)
	if answer.RecordError == nil && c.task != nil {
		h.onTask(ctx, c.Scope, answer.Step.SessionID)
	}
	return answer, answer.RecordError
}

// checkRecorded converts a report into a call and its outcome.
func (h *Hand) checkRecorded(r *Recorded) (*call, outcome, error) {
	if err := checkFields(&r.Request); err != nil {
		return nil, outcome{}, err
	}
	tool, err := tools.NewRemote(tools.Descriptor{Name: h.toolName(r.Request), Level: tools.LevelFunction}, nil)
	if err != nil {
		return nil, outcome{}, invalid.Field(ErrInvalid, "tool_name", "must be 1 to 128 letters, digits or _ : . - /")
	}
	args, err := tools.ParseArguments(r.Args)
	if err != nil {
		return nil, outcome{}, withSchema(err, tool)
	}
	var found redact.Counts
	if len(r.Output.Data) <= MaxOutputBytes {
		if err := h.redactRecorded(r, &found); err != nil {
			return nil, outcome{}, err
		}
	}
	out, err := reported(*r)
	if err != nil {
		return nil, outcome{}, err
	}
	out.redacted = found
	c := &call{Request: r.Request, tool: tool, args: args, reported: true, exempt: r.Exempt}
	h.redactCall(c)
	if r.Task != nil {
		task := *r.Task
		task.SessionID = r.SessionID
		if err := task.Check(); err != nil {
			return nil, outcome{}, fmt.Errorf("hand: task: %w", err)
		}
		c.task = &task
	}
	return c, out, nil
}

// toolName is the tool that a name means: as in Call where there is one, and else
// by the rules for steps.
func (h *Hand) toolName(req Request) string {
	if tool, ok := h.Tools.Own(req.Name); ok {
		return tool.Descriptor().Name
	}
	name := h.Reducer.ToolName(req.Name)
	if name == req.Name {
		return name // also that of a tool of an agent, and finding one may read the store
	}
	if tool, ok := h.Tools.Find(req.Scope.Tenant, req.Name); ok {
		return tool.Descriptor().Name
	}
	return name
}

// recordedDigest is the hash of a report. That of a JSON result has the result in
// it, that of any other the result's hash.
func recordedDigest(c *call, r *Recorded, out *outcome) [32]byte {
	content := r.Output.Data
	kind := "record"
	if r.Output.Form == step.FormText || r.Output.Form == step.FormBytes || r.Body != nil {
		kind += " " + r.Output.Form.String() + " " + r.Output.MediaType
		content = []byte(out.body.sha256)
	}
	more := [][]byte{content, []byte(r.ErrorMessage), fmt.Append(nil, r.Failed)}
	if r.Refused {
		more = append(more, []byte("refused"))
	}
	if c.task != nil {
		more = append(more, c.task.Content())
	}
	return digest(c, kind, more...)
}

// reported reads the result of a report, unless it is bytes or text.
func reported(r Recorded) (outcome, error) {
	out := outcome{}
	if r.Failed || r.Refused {
		out.failure = &tools.Error{Code: tools.Failed, Message: r.ErrorMessage}
		if r.Refused || len(r.Output.Data) == 0 && r.Body == nil && isRefusal(r.ErrorMessage) {
			out.failure.Code = tools.Refused
		}
	}
	if len(r.Output.Data) > MaxOutputBytes {
		return outcome{}, invalid.Field(ErrInvalid, outputKey, "is longer than %d bytes", MaxOutputBytes)
	}
	var err error
	switch r.Output.Form {
	case step.FormUnknown, step.FormNone:
		out.given.Form = step.FormNone
	case step.FormJSON:
		if r.Body != nil {
			break
		}
		if out.given, err = step.ParseResult(r.Output.Data); err != nil {
			return outcome{}, invalid.Field(ErrInvalid, outputKey, "is not one JSON value")
		}
		if out.given.IsValue && out.given.Value == nil && r.Failed {
			out.given.IsValue = false // a failure that gave nothing
		}
	case step.FormText:
		if !utf8.Valid(r.Output.Data) {
			return outcome{}, invalid.Field(ErrInvalid, outputKey, "is not UTF-8")
		}
	}
	return out, nil
}

// isRefusal knows the texts by which agents' frameworks, loom-py first, say that
// they did not run a tool.
func isRefusal(message string) bool {
	for _, start := range []string{"Tool not found: ", "Permission denied: ", "Invalid arguments: "} {
		if strings.HasPrefix(message, start) {
			return true
		}
	}
	return false
}

// takeGiven takes in a result that is text or bytes. Nothing leads to it until the
// step does.
func (h *Hand) takeGiven(ctx context.Context, c *call, r *Recorded, out *outcome) error {
	if r.Body == nil && r.Output.Form != step.FormText && r.Output.Form != step.FormBytes {
		return nil
	}
	out.given = step.Result{Form: r.Output.Form, MediaType: r.Output.MediaType}
	if r.Body == nil {
		out.body = h.takeText(ctx, c, r.Output.Data)
		return nil
	}
	place, err := h.uploads.Take(ctx, share.Owner{Tenant: c.Scope.Tenant, Agent: c.Scope.Owner}, 1)
	if err != nil {
		return fmt.Errorf("hand: record: %w", err)
	}
	defer place.Leave()
	out.body, err = h.takeLong(ctx, c, r.Body)
	if err == nil && r.Output.Form != step.FormBytes && !out.body.stored.UTF8 {
		err = invalid.Field(ErrInvalid, outputKey, "is not UTF-8")
	}
	return err
}

// takeText makes a blob of a text.
func (h *Hand) takeText(ctx context.Context, c *call, text []byte) body {
	b := body{size: int64(len(text)), head: text}
	stored, err := h.Blobs.Add(ctx, c.Scope, b.head)
	if err != nil {
		b.uploadErr = err
		return b
	}
	b.stored, b.lines, b.sha256, b.binary = &stored, stored.Lines, stored.Ref(), stored.Binary
	return b
}

// takeLong makes a blob of what a reader gives.
func (h *Hand) takeLong(ctx context.Context, c *call, from io.Reader) (body, error) {
	upload := h.Blobs.Create(ctx, c.Scope)
	defer upload.Abort()
	n, err := upload.ReadFrom(io.LimitReader(from, h.maxResult+1))
	if err == nil && n > h.maxResult {
		err = invalid.Field(ErrInvalid, outputKey, "is longer than %d bytes", h.maxResult)
	}
	if err != nil {
		return body{}, err
	}
	stored, err := upload.Finish(ctx)
	if err != nil {
		return body{}, err
	}
	return bodyOf(stored), nil
}

// bodyOf is a body that was stored.
func bodyOf(stored blob.Stored) body {
	return body{
		size: stored.Size, stored: &stored, lines: stored.Lines, sha256: stored.Ref(),
		head: stored.Head, tail: stored.Tail, binary: stored.Binary,
	}
}
