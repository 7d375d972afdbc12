package hand

import (
	"errors"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// mistake distinguishes mistakes of a model from mistakes of the program that runs it. It returns
// how a call with a CallID fails for an error that refuses calls: a model chose the tool and
// wrote the arguments, so it reads in a failed step what was wrong with them. Nil leaves the
// error to the program, which alone can mend it.
//
//	the model's: an unknown tool, arguments that are no JSON, too large or against the
//	             schema, a tool or a profile that the policy does not give it, a limit of the
//	             agent's files and bytes, a result that is too large, a timeout
//	the program's: a field of the request that breaks a rule, an agent that has ended or may
//	             make no more steps, a reused request id, no workspace, a limit of the tool
//	             (the same call may be made again when there is room), a server that has no
//	             room, is closed, or can't reach its store, a call that was given up
//
// What the policy refuses, what is too large and what times out never was an error here:
// such a step failed for any caller. Without a CallID there is no model that waits for the
// result, and each mistake is an error of Call.
func (h *Hand) mistake(err error) *tools.Error {
	if unknown, ok := errors.AsType[*tools.NotFoundError](err); ok {
		message := "Tool not found: " + toolNameOf(unknown.Name)
		if unknown.Nearest != "" {
			message += " (did you mean " + h.Tools.Called(unknown.Nearest) + "?)"
		}
		return &tools.Error{Code: tools.NotFound, Message: message, Cause: err}
	}
	if bad, ok := errors.AsType[*tools.ArgumentsError](err); ok {
		message := "Invalid arguments: "
		if bad.Tool != "" {
			message = "Invalid arguments of " + h.Tools.Called(bad.Tool) + ": "
		}
		return &tools.Error{Code: tools.InvalidArguments, Message: message + bad.Detail(), Cause: err}
	}
	if over, ok := errors.AsType[*tools.AgentLimitError](err); ok && over.Limit != tools.LimitSteps {
		return &tools.Error{Code: tools.TooLarge, Message: over.Error() + " in its workspace", Cause: err}
	}
	return nil
}

// mistaken is the call that a request would have been but for a mistake of its model; nil
// where the error is the program's.
func (h *Hand) mistaken(req Request, came time.Time, err error) *call {
	if req.CallID == "" || checkFields(&req) != nil {
		return nil
	}
	failure := h.mistake(err)
	if failure == nil {
		return nil
	}
	given, name := req.Args, toolNameOf(h.toolName(req))
	args, err := tools.ParseArguments(req.Args)
	if err != nil { // the message that made the call has them as they were written
		args, req.Args = map[string]any{}, nil
	}
	tool, err := tools.NewRemote(tools.Descriptor{Name: name, Level: tools.LevelFunction}, nil)
	if err != nil {
		return nil
	}
	req.Name = toolNameOf(req.Name)
	c := &call{Request: req, tool: tool, args: args, came: came, timeout: DefaultTimeout, mistake: failure}
	c.digest = digest(c, "mistake", given)
	if c.once = req.RequestID; c.once == "" && req.TurnID != "" {
		c.once = onceOfCall(c.digest)
	}
	h.redactCall(c)
	return c
}

// toolNameOf is a name that a model wrote, as a tool could have it.
func toolNameOf(name string) string {
	name = strings.Map(func(r rune) rune {
		if settings.IsToolName(string(r)) {
			return r
		}
		return '_'
	}, name[:min(len(name), tools.MaxNameBytes)])
	if name == "" {
		return "_"
	}
	return name
}
