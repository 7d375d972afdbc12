package hand

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// RawAnswer is the answer of a call that was not recorded. It belongs to the
// receiver.
type RawAnswer struct {
	// Output is the whole result as compact JSON with sorted keys; nil after
	// failure.
	Output json.RawMessage
	// Failure is why the tool failed; nil after success. Its code is TooLarge
	// when the result exceeds Request.MaxOutput.
	Failure *tools.Error
}

// Run runs a tool as Call does, and records nothing: no step, no blob, no
// intent. It is for callers that keep their own history. Thought, turn, call and
// request id of the request are not used. It returns the errors of Call.
func (h *Hand) Run(ctx context.Context, req Request) (RawAnswer, error) {
	if err := h.begin(); err != nil {
		return RawAnswer{}, err
	}
	req.RequestID = ""
	came := h.now()
	c, err := h.check(req, came, false) // agents of loom.v1 may name others, which count for nothing
	if err != nil {
		defer h.running.Done()
		h.auditRefused(ctx, req, came, err)
		return RawAnswer{}, err
	}
	defer h.end(c)
	answer, err := h.performRaw(ctx, c)
	if err != nil {
		h.auditRefused(ctx, c.Request, came, err)
		return RawAnswer{}, err
	}
	h.auditRaw(ctx, c, answer)
	return answer, nil
}

// performRaw runs the tool, if it may run.
func (h *Hand) performRaw(ctx context.Context, c *call) (RawAnswer, error) {
	var err error
	if c.bounds, err = h.Bounds(ctx, c.Scope); err == nil {
		err = c.bounds.Ended
	}
	if err != nil {
		return RawAnswer{}, err
	}
	if failure := c.forbidden(); failure != nil {
		return RawAnswer{Failure: failure}, nil
	}
	if err := h.limit(c); err != nil {
		return RawAnswer{}, err
	}
	failure, err := h.approve(ctx, c)
	if err != nil || failure != nil {
		return RawAnswer{Failure: failure}, err
	}
	if err := h.enter(ctx, c); err != nil {
		return RawAnswer{}, err
	}
	root, err := h.Workspaces.Root(c.Scope)
	if err != nil {
		return RawAnswer{}, err
	}
	if failure := h.confine(c, root); failure != nil {
		return RawAnswer{Failure: failure}, nil
	}
	if failure := h.unchanged(ctx, c, root); failure != nil {
		return RawAnswer{Failure: failure}, nil
	}
	if c.MaxOutput <= 0 {
		c.MaxOutput = MaxOutputBytes
	}
	c.whole = true
	out := h.run(ctx, c, root)
	if out.refused != nil {
		return RawAnswer{}, out.refused
	}
	c.tier = out.result.Tier
	out.failure = cleaner{known: h.secrets.For(c.Scope.Tenant)}.redactFailure(out.failure, nil)
	return rawAnswer(c, out), nil
}

func rawAnswer(c *call, out outcome) RawAnswer {
	if out.failure != nil {
		return RawAnswer{Failure: out.failure}
	}
	if out.result.Join != nil {
		return RawAnswer{Failure: tools.Errorf(tools.Failed, "%s is only for calls that are recorded; nothing was done", c.name())}
	}
	values := out.result.Values
	if values == nil {
		values = map[string]any{}
	}
	if out.result.BodyKey != "" {
		values[out.result.BodyKey] = string(out.body.shown)
	}
	answer := answerOf(values, out.result.ValueKey)
	if out.result.Brief != nil {
		answer = out.result.Brief
	}
	text, err := compact(answer)
	if err != nil {
		return RawAnswer{Failure: tools.Errorf(tools.Failed, "the result is no JSON: %w", err)}
	}
	if len(text) > c.MaxOutput {
		return RawAnswer{Failure: tooLarge(int64(len(text)), c.MaxOutput)}
	}
	return RawAnswer{Output: text}
}

func tooLarge(size int64, limit int) *tools.Error {
	return tools.Errorf(tools.TooLarge, "result of %d bytes exceeds the limit of %d", size, limit)
}

// takeWhole reads all of a body that is text and not too long.
func takeWhole(_ context.Context, c *call, result tools.Output) (body, error) {
	if result.BodySize > int64(c.MaxOutput) {
		return body{}, tooLarge(result.BodySize, c.MaxOutput)
	}
	text, err := io.ReadAll(io.LimitReader(result.Body, int64(c.MaxOutput)+1))
	switch {
	case err != nil:
		return body{}, err
	case len(text) > c.MaxOutput:
		return body{}, tooLarge(max(result.BodySize, int64(len(text))), c.MaxOutput)
	case result.BodyLossy:
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	case !utf8.Valid(text):
		return body{}, &tools.Error{Code: tools.Failed, Message: fmt.Sprintf("the result of %s is not UTF-8 text", c.name())}
	}
	return body{shown: text, size: int64(len(text))}, nil
}
