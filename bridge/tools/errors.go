package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// Errors of the registry and of calls that are refused before they run.
var (
	// ErrToolNotFound: no tool has that name. It comes as a *NotFoundError.
	ErrToolNotFound = errors.New("tools: tool not found")
	// ErrInvalidArguments: the arguments are not a JSON object or break the
	// schema. It comes as an *ArgumentsError.
	ErrInvalidArguments = errors.New("tools: invalid arguments")
	// ErrBadDescriptor: a tool can't be added as described. It comes as a
	// *DescriptorError.
	ErrBadDescriptor = errors.New("tools: bad descriptor")
	// ErrToolExists: a tool of that name is there already.
	ErrToolExists = errors.New("tools: tool exists")
	// ErrTooManyTools: the registry is full.
	ErrTooManyTools = errors.New("tools: too many tools")
	// ErrAgentLimit: the agent has used up one of its limits; nothing was done. It comes as
	// a *LimitError.
	ErrAgentLimit = errors.New("tools: limit of the agent")
)

// The limits of agents, by name.
const (
	LimitSteps = "steps"
	LimitFiles = "files"
	LimitBytes = "bytes"
)

// AgentLimitError names a limit that an agent has used up. It is an ErrAgentLimit.
type AgentLimitError struct {
	// Limit is its name.
	Limit string
	// Max is its value.
	Max int64
}

func (e *AgentLimitError) Error() string {
	return fmt.Sprintf("limit of the agent: it may have at most %d %s", e.Max, e.Limit)
}

// Is makes errors.Is(err, ErrAgentLimit) true.
func (e *AgentLimitError) Is(target error) bool { return target == ErrAgentLimit }

// Code says why a tool failed, for programs. Empty means it did not.
type Code string

// The codes.
const (
	NotFound         Code = "NOT_FOUND"               // what it should work on is not there
	PermissionDenied Code = step.CodePermissionDenied // outside what the tool may touch
	TooLarge         Code = "TOO_LARGE"               // over a stated limit
	Timeout          Code = "TIMEOUT"                 // did not end in time
	Failed           Code = "FAILED"                  // anything else, explained by the message
	OutcomeUnknown   Code = "OUTCOME_UNKNOWN"         // stopped while it ran, may have taken effect
	InvalidArguments Code = step.CodeInvalidArguments // run elsewhere, where the arguments were not taken
	Refused          Code = step.CodeRefused          // reported by a caller: the tool was not run at all
	ProviderAway     Code = step.CodeProviderAway     // the agent that provides it is not attached; nothing ran
)

// Known reports whether it is one of the codes.
func (c Code) Known() bool {
	switch c {
	case NotFound, PermissionDenied, TooLarge, Timeout, Failed, OutcomeUnknown, InvalidArguments, Refused, ProviderAway:
		return true
	}
	return false
}

// Error is what a tool fails with. Message is shown to the model as it is.
type Error struct {
	Code    Code
	Message string
	// Cause is the error behind it, for logs and errors.Is; may be nil.
	Cause error
}

// Errorf returns an Error with a formatted message. A %w operand becomes its
// cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// NotFoundError says that no tool has the name, and which one may be meant. It
// is an ErrToolNotFound.
type NotFoundError struct {
	Name string
	// Nearest is the registered name most like it; empty when none is alike.
	Nearest string
}

func (e *NotFoundError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("tools: tool not found: %s", e.Name)
	}
	return fmt.Sprintf("tools: tool not found: %s (did you mean %s?)", e.Name, e.Nearest)
}

// Is makes errors.Is(err, ErrToolNotFound) true.
func (e *NotFoundError) Is(target error) bool { return target == ErrToolNotFound }

// Violation is one thing wrong with the arguments.
type Violation struct {
	// Path leads to the value, such as "path" or "edits[2].line"; empty for the
	// arguments as a whole.
	Path string
	// Problem says what is wrong, such as "is required".
	Problem string
}

// String returns the path and the problem.
func (v Violation) String() string {
	if v.Path == "" {
		return v.Problem
	}
	return v.Path + ": " + v.Problem
}

// ArgumentsError lists all faults of a call's arguments, and
// the schema they should match. It is an ErrInvalidArguments.
type ArgumentsError struct {
	// Tool is the tool's name; empty when the arguments were read on their own.
	Tool string
	// Violations is never empty and holds at most MaxViolations.
	Violations []Violation
	// Schema is the tool's JSON Schema; nil when the tool is not known, or the text is no JSON
	// object within the limits: then Violations holds the one reason.
	Schema json.RawMessage
}

// Detail joins the violations into one line, without the tool's name.
func (e *ArgumentsError) Detail() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = v.String()
	}
	return strings.Join(lines, "; ")
}

func (e *ArgumentsError) Error() string {
	if e.Tool == "" {
		return "tools: invalid arguments: " + e.Detail()
	}
	return fmt.Sprintf("tools: invalid arguments of %s: %s", e.Tool, e.Detail())
}

// Is makes errors.Is(err, ErrInvalidArguments) true.
func (e *ArgumentsError) Is(target error) bool { return target == ErrInvalidArguments }

// DescriptorError says which part of a descriptor is not acceptable. It is an
// ErrBadDescriptor.
type DescriptorError struct {
	Name    string
	Field   string // name, description, schema, level
	Problem string
}

func (e *DescriptorError) Error() string {
	return fmt.Sprintf("tools: bad descriptor %q: %s %s", e.Name, e.Field, e.Problem)
}

// Is makes errors.Is(err, ErrBadDescriptor) true.
func (e *DescriptorError) Is(target error) bool { return target == ErrBadDescriptor }
