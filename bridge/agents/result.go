package agents

import "github.com/loom-bridge/loom-bridge/bridge/tools"

// Failure is the result of a call that failed for a reason that package tools
// has a code for.
func Failure(code tools.Code, message string) ToolResult {
	status := ResultError
	switch code {
	case tools.Timeout:
		status = ResultTimeout
	case tools.NotFound:
		status = ResultNotFound
	case tools.InvalidArguments:
		status = ResultInvalidArguments
	}
	return ToolResult{Status: status, HasError: true, ErrorCode: string(code), ErrorMessage: message}
}

// Code is why the call failed: the code that the agent gave if it is one of
// package tools, else what the status says. Empty after success.
func (r ToolResult) Code() tools.Code {
	if r.Status == ResultOK {
		return ""
	}
	if code := tools.Code(r.ErrorCode); code.Known() {
		return code
	}
	switch r.Status {
	case ResultTimeout:
		return tools.Timeout
	case ResultNotFound:
		return tools.NotFound
	case ResultInvalidArguments:
		return tools.InvalidArguments
	}
	return tools.Failed
}
