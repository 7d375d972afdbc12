package loomv1

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// Codes of a tool result's error.
const (
	codeInvalidArguments = "INVALID_ARGUMENTS"
	codeNotFound         = "NOT_FOUND"
	codeTimeout          = "TIMEOUT"
	codeExecutionError   = "EXECUTION_ERROR"
)

// Beginnings of error texts. loom-py and its users look for some of them.
const (
	prefixInvalid   = "Invalid arguments: "
	prefixNotFound  = "Tool not found: "
	prefixDenied    = "Permission denied: "
	prefixExecution = "Execution failed: "
	prefixInternal  = "Internal error: "
)

// textTimeout is the whole text of a call that took too long.
const textTimeout = "Timeout"

func errorResult(toolStatus loomv1pb.ToolStatus, code, message string) *loomv1pb.ToolResult {
	// A file name on disk may not be UTF-8, and protobuf refuses such a text.
	message = text.Valid(message)
	return &loomv1pb.ToolResult{Status: toolStatus, Error: &loomv1pb.ToolError{Code: code, Message: message}}
}

func invalidArguments(message string) *loomv1pb.ToolResult {
	return errorResult(loomv1pb.ToolStatus_TOOL_INVALID_ARGUMENTS, codeInvalidArguments, message)
}

func notFound(what string) *loomv1pb.ToolResult {
	return errorResult(loomv1pb.ToolStatus_TOOL_NOT_FOUND, codeNotFound, prefixNotFound+what)
}

func timedOut() *loomv1pb.ToolResult {
	return errorResult(loomv1pb.ToolStatus_TOOL_TIMEOUT, codeTimeout, textTimeout)
}

func executionError(message string) *loomv1pb.ToolResult {
	return errorResult(loomv1pb.ToolStatus_TOOL_ERROR, codeExecutionError, message)
}

func executionFailed(format string, args ...any) *loomv1pb.ToolResult {
	return executionError(prefixExecution + fmt.Sprintf(format, args...))
}

// failed is the result of a tool of the server that failed.
func failed(failure *tools.Error) *loomv1pb.ToolResult {
	switch failure.Code {
	case tools.NotFound:
		return notFound(failure.Message)
	case tools.Timeout:
		return timedOut()
	case tools.OutcomeUnknown:
		if errors.Is(failure, context.DeadlineExceeded) {
			return timedOut()
		}
	case tools.PermissionDenied:
		return executionError(prefixed(prefixDenied, failure.Message))
	case tools.TooLarge, tools.Failed:
	}
	if strings.HasPrefix(failure.Message, prefixInternal) {
		return executionError(failure.Message)
	}
	return executionError(prefixed(prefixExecution, failure.Message))
}

func prefixed(prefix, message string) string {
	if strings.HasPrefix(message, prefix) {
		return message
	}
	return prefix + message
}

// refused is the result of a call that the server refused to run.
func (c toolCaller) refused(ctx context.Context, call *loomv1pb.ToolCall, err error) *loomv1pb.ToolResult {
	bad, isArguments := errors.AsType[*tools.ArgumentsError](err)
	limited, isLimited := errors.AsType[*throttle.LimitedError](err)
	switch {
	case isArguments:
		return invalidArguments(prefixInvalid + bad.Detail())
	case errors.Is(err, tools.ErrToolNotFound):
		return notFound(call.GetName())
	case errors.Is(err, share.ErrExhausted):
		return executionFailed("too many calls are waiting")
	case errors.Is(err, children.ErrEnded):
		return executionFailed("%s", clip(err.Error()))
	case isLimited:
		return executionFailed("too many calls of %s; try again in %v", limited.Tool, limited.Retry)
	case errors.Is(err, hand.ErrClosed):
		return executionFailed(publicStopping)
	}
	return c.broken(ctx, call, err)
}

// broken is the result of a call that was cancelled or failed within the server.
func (c toolCaller) broken(ctx context.Context, call *loomv1pb.ToolCall, err error) *loomv1pb.ToolResult {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut()
	case errors.Is(err, context.Canceled):
		return executionFailed("the caller gave up")
	}
	c.Options.Logger.ErrorContext(ctx, "loom.v1 tool call failed", "tool", call.GetName(), "error", err)
	return executionError(prefixInternal + publicText(err))
}
