package hand

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// cleaner takes out of texts what the server knows to be a secret, and what looks like one. In
// one that has neither, they stay as they are.
type cleaner struct {
	known    *secret.Mask
	patterns *redact.Redactor
}

// cleaner returns the cleaner for the records of a tenant's calls.
func (h *Hand) cleaner(tenant string) cleaner { return cleaner{h.secrets.For(tenant), h.redact} }

func (by cleaner) idle() bool { return by.known == nil && by.patterns == nil }

func (by cleaner) text(s string, counts *redact.Counts) string {
	return by.patterns.Text(by.known.Text(s), counts)
}

func (by cleaner) json(data []byte, counts *redact.Counts) []byte {
	return by.patterns.Bytes(by.known.JSON(data), counts)
}

func (by cleaner) value(v any, counts *redact.Counts) any {
	return by.patterns.Value(by.known.Value(v), counts)
}

func (by cleaner) object(values map[string]any, counts *redact.Counts) map[string]any {
	return by.patterns.Object(by.known.Object(values), counts)
}

func (by cleaner) reader(from io.Reader, counts *redact.Counts) io.Reader {
	return by.patterns.Reader(by.known.Reader(from), counts)
}

// redactCall makes the recorded form of a call: the tool itself gets the original
// arguments.
func (h *Hand) redactCall(c *call) {
	c.kept, c.keptArgs = c.args, c.Args
	by := h.cleaner(c.Scope.Tenant)
	if by.idle() {
		return
	}
	c.Thought = by.text(c.Thought, &c.redacted)
	c.kept = by.object(c.args, &c.redacted)
	c.keptArgs = by.json(c.Args, nil)
}

// redactValues redacts what a tool gave, but for its body.
func (by cleaner) redactValues(out *outcome) {
	if by.idle() {
		return
	}
	r := &out.result
	r.Values = by.object(r.Values, &out.redacted)
	r.Brief = by.value(r.Brief, nil)
	if g := &out.given; g.Form == step.FormJSON {
		r.Given.Data = by.json(r.Given.Data, nil)
		g.JSON = by.json(g.JSON, nil)
		if g.Output, g.Value = r.Values, nil; g.IsValue {
			g.Output, g.Value = nil, r.Values[r.ValueKey]
		}
	}
}

// redactFailure redacts what is said about a failure, in a copy.
func (by cleaner) redactFailure(failure *tools.Error, counts *redact.Counts) *tools.Error {
	if by.idle() || failure == nil {
		return failure
	}
	safe := *failure
	safe.Message = by.text(failure.Message, counts)
	return &safe
}

// redactRecorded redacts the result of a tool that the caller ran.
func (h *Hand) redactRecorded(r *Recorded, counts *redact.Counts) error {
	by := h.cleaner(r.Scope.Tenant)
	if by.idle() {
		return nil
	}
	r.ErrorMessage = by.text(r.ErrorMessage, counts)
	switch {
	case r.Body != nil:
		r.Body = by.reader(r.Body, counts)
	case r.Output.Form == step.FormBytes:
		data, err := io.ReadAll(by.reader(bytes.NewReader(r.Output.Data), counts))
		if err != nil {
			return err
		}
		r.Output.Data = data
	default:
		r.Output.Data = by.json(r.Output.Data, counts)
	}
	if r.Task != nil {
		task := by.redactTask(*r.Task, counts)
		r.Task = &task
	}
	return nil
}

func (by cleaner) redactTask(t session.Task, counts *redact.Counts) session.Task {
	t.Action = by.text(t.Action, counts)
	t.Parameters = json.RawMessage(by.json(t.Parameters, counts))
	t.Result = by.text(t.Result, counts)
	tags := make([]string, len(t.Tags))
	for i, tag := range t.Tags {
		tags[i] = by.text(tag, counts)
	}
	t.Tags = tags
	return t
}

// redactBody is a body without secrets. One that is stored already is as it is.
func (by cleaner) redactBody(r tools.Output, counts *redact.Counts) io.ReadCloser {
	if by.idle() || readBack(r) {
		return r.Body
	}
	return struct {
		io.Reader
		io.Closer
	}{by.reader(r.Body, counts), r.Body}
}
