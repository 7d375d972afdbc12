package hand

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// redactCall makes what is recorded of a call: the tool itself gets its arguments as they
// came.
func (h *Hand) redactCall(c *call) {
	c.kept, c.keptArgs = c.args, c.Args
	if h.redact == nil {
		return
	}
	c.Thought = h.redact.Text(c.Thought, &c.redacted)
	c.kept = h.redact.Object(c.args, &c.redacted)
	c.keptArgs = h.redact.Bytes(c.Args, nil)
}

// redactValues redacts what a tool gave, but for its body.
func (h *Hand) redactValues(out *outcome) {
	if h.redact == nil {
		return
	}
	r := &out.result
	r.Values = h.redact.Object(r.Values, &out.redacted)
	r.Brief = h.redact.Value(r.Brief, nil)
	if g := &out.given; g.Form == step.FormJSON {
		r.Given.Data = h.redact.Bytes(r.Given.Data, nil)
		g.JSON = h.redact.Bytes(g.JSON, nil)
		if g.Output, g.Value = r.Values, nil; g.IsValue {
			g.Output, g.Value = nil, r.Values[r.ValueKey]
		}
	}
}

// redactFailure redacts what is said about a failure, in a copy.
func (h *Hand) redactFailure(failure *tools.Error, counts *redact.Counts) *tools.Error {
	if h.redact == nil || failure == nil {
		return failure
	}
	safe := *failure
	safe.Message = h.redact.Text(failure.Message, counts)
	return &safe
}

// redactRecorded redacts the result of a tool that the caller ran.
func (h *Hand) redactRecorded(r *Recorded, counts *redact.Counts) error {
	if h.redact == nil {
		return nil
	}
	r.ErrorMessage = h.redact.Text(r.ErrorMessage, counts)
	switch {
	case r.Body != nil:
		r.Body = h.redact.Reader(r.Body, counts)
	case r.Output.Form == step.FormBytes:
		data, err := io.ReadAll(h.redact.Reader(bytes.NewReader(r.Output.Data), counts))
		if err != nil {
			return err
		}
		r.Output.Data = data
	default:
		r.Output.Data = h.redact.Bytes(r.Output.Data, counts)
	}
	if r.Task != nil {
		task := h.redactTask(*r.Task, counts)
		r.Task = &task
	}
	return nil
}

func (h *Hand) redactTask(t session.Task, counts *redact.Counts) session.Task {
	t.Action = h.redact.Text(t.Action, counts)
	t.Parameters = json.RawMessage(h.redact.Bytes(t.Parameters, counts))
	t.Result = h.redact.Text(t.Result, counts)
	tags := make([]string, len(t.Tags))
	for i, tag := range t.Tags {
		tags[i] = h.redact.Text(tag, counts)
	}
	t.Tags = tags
	return t
}

// redactBody is a body without secrets. One that is stored already is as it is.
func (h *Hand) redactBody(r tools.Output, counts *redact.Counts) io.ReadCloser {
	if h.redact == nil || readBack(r) {
		return r.Body
	}
	return struct {
		io.Reader
		io.Closer
	}{h.redact.Reader(r.Body, counts), r.Body}
}
