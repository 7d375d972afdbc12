package hand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/span"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// outcome is what running a tool gave.
type outcome struct {
	result tools.Output
	body   body
	// given is the result as the tool's runner gave it. Its Form is FormUnknown
	// for a tool of the server.
	given step.Result
	// json is the result of a tool of the server as JSON text, where it has no body.
	json []byte
	// failure is why the tool failed; nil after success.
	failure *tools.Error
	// redacted counts the secrets that were taken out of the result.
	redacted redact.Counts
	// refused is the error of a tool that did not take its arguments, or of one that
	// was never asked.
	refused error
}

// run runs the tool under its deadline. A tool that does not end soon after it
// is left alone.
func (h *Hand) run(ctx context.Context, c *call, root *os.Root) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	done := make(chan outcome, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done <- h.guarded(ctx, c, root)
	}()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
	}
	stopping := time.NewTimer(stopTime)
	defer stopping.Stop()
	select {
	case out := <-done:
		return out
	case <-stopping.C:
		c.late = ended
		failure := leftAlone(ctx, c)
		go func() {
			late := <-done
			late.endJoin(failure)
		}()
		return outcome{failure: failure}
	}
}

func leftAlone(ctx context.Context, c *call) *tools.Error {
	failure := stopped(ctx.Err())
	if c.tool.Descriptor().Mutates {
		failure.Code = tools.OutcomeUnknown
		failure.Message += "; it did not stop and may still take effect"
	}
	return failure
}

// stopped is the failure of a tool that ended because its context did.
func stopped(err error) *tools.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &tools.Error{Code: tools.Timeout, Message: "Timeout", Cause: err}
	}
	return &tools.Error{Code: tools.Failed, Message: "the caller gave up", Cause: err}
}

// guarded runs the tool and takes in its body. A panic is a failure.
func (h *Hand) guarded(ctx context.Context, c *call, root *os.Root) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			h.logger.ErrorContext(ctx, "tool panicked",
				"tool", c.name(), "scope", c.Scope.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			out = outcome{failure: &tools.Error{Code: tools.Failed, Message: "Internal error: the tool crashed"}}
		}
	}()
	in := h.input(c, root)
	in.Room, in.Profile, in.Report = c.room(root), c.profile, h.reporter(ctx, c)
	in.Ask = func(ctx context.Context, what policy.Capability) error { return h.ask(ctx, c, root, what) }
	if c.shown != nil {
		in.Approved = c.shown.Parts
	}
	running, end := span.Start(ctx, "run_tool", c.name())
	result, err := c.tool.Run(running, in)
	end(err)
	if err != nil {
		out = failed(c, err)
		out.result.Tier = result.Tier
		return out
	}
	out.result = result
	out.takeGiven()
	result = out.result
	by := h.cleaner(c.Scope.Tenant)
	if c.whole { // nothing of it is stored
		by.patterns = nil
	}
	defer by.redactValues(&out)
	if result.Body == nil {
		return out
	}
	result.Body = by.redactBody(result, &out.redacted)
	defer result.Body.Close()
	take := h.takeBody
	if c.whole {
		take = takeWhole
	}
	if out.body, err = take(ctx, c, result); err != nil {
		out = failed(c, err)
		out.result.Tier = result.Tier
	}
	return out
}

// input is a call as its tool sees it, without what it may do.
func (h *Hand) input(c *call, root *os.Root) tools.Input {
	return tools.Input{
		Closed: h.closedTo(c.Scope), Scope: c.Scope, SessionID: c.SessionID, CallID: c.CallID, Tool: c.name(), Root: root, Args: c.args,
		ListedPrograms: c.ListedPrograms,
	}
}

// ProgressEvery is the least time between two reports of the progress of one call.
const ProgressEvery = 100 * time.Millisecond

// reporter takes the progress of a call's tool: what comes too soon after the last
// is left out.
func (h *Hand) reporter(ctx context.Context, c *call) func(tools.Progress) {
	if h.onProgress == nil {
		return nil
	}
	var mu sync.Mutex
	var last time.Time
	return func(p tools.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= ProgressEvery && ctx.Err() == nil {
			last = now
			p.Message = h.cleaner(c.Scope.Tenant).text(p.Message, nil)
			h.onProgress(ctx, c.Request, c.name(), p)
		}
	}
}

// takeGiven takes over a result that an agent gave.
func (out *outcome) takeGiven() {
	given := &out.result.Given
	if given.Form == step.FormUnknown {
		return
	}
	out.given = step.Result{Form: given.Form, MediaType: given.MediaType}
	if given.Form == step.FormJSON {
		out.given.JSON = given.Data
		out.given.Output, out.given.Value, out.given.IsValue = out.result.Values, out.result.Values[out.result.ValueKey], out.result.ValueKey != ""
		if out.given.IsValue {
			out.given.Output = nil
		}
		return
	}
	out.result.Body = io.NopCloser(bytes.NewReader(given.Data))
	out.result.BodyKey, out.result.ValueKey = outputKey, outputKey
	out.result.BodySize = int64(len(given.Data))
}

// failed sorts a tool's error.
func failed(c *call, err error) outcome {
	if errors.Is(err, tools.ErrInvalidArguments) {
		return outcome{refused: withSchema(err, c.tool)}
	}
	if errors.Is(err, share.ErrExhausted) || errors.Is(err, tools.ErrAgentLimit) {
		return outcome{refused: err}
	}
	if failure, ok := errors.AsType[*tools.Error](err); ok {
		return outcome{failure: failure}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return outcome{failure: stopped(err)}
	}
	return outcome{failure: &tools.Error{Code: tools.Failed, Message: "" + err.Error(), Cause: err}}
}
