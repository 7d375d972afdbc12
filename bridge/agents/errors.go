package agents

import (
	"errors"
	"fmt"
)

// Errors of the directory and of calls.
var (
	// ErrInvalid: an id, a registration or a state is malformed.
	ErrInvalid = errors.New("agents: invalid")
	// ErrNotFound: no agent registered the tool, or nothing is stored for the agent.
	ErrNotFound = errors.New("agents: not found")
	// ErrNotConnected: the agent has no open stream, or lost it during the call.
	ErrNotConnected = errors.New("agents: not connected")
	// ErrBusy: a queue of the agent is full.
	ErrBusy = errors.New("agents: agent is busy")
	// ErrClosed: the directory is closed.
	ErrClosed = errors.New("agents: directory is closed")
	// ErrDamaged: a stored state or gap can't be read.
	ErrDamaged = errors.New("agents: stored value is damaged")
)

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// NotConnectedError names the agent that can't be reached. It is an
// ErrNotConnected. Its text is shown to callers as it is.
type NotConnectedError struct {
	Agent string
	// Sent says that the agent may have received the call before its stream ended, so
	// the call may have taken effect. False: it was never sent.
	Sent bool
}

func (e *NotConnectedError) Error() string { return "agent " + e.Agent + " is not connected" }

// Is makes errors.Is(err, ErrNotConnected) true.
func (e *NotConnectedError) Is(target error) bool { return target == ErrNotConnected }

// ErrTaken: another agent or the server has the name of a tool. It comes as a
// *TakenError.
var ErrTaken = errors.New("agents: name of a tool is taken")

// TakenError says who has the name of a tool. It is an ErrTaken.
type TakenError struct {
	// Tool is the name that was refused.
	Tool string
	// By is the tool that has the name or one that models write alike, and Agent the
	// agent that provides it; both are empty for a tool of the server.
	By, Agent string
}

func (e *TakenError) Error() string {
	switch {
	case e.Agent == "":
		return fmt.Sprintf("agents: the tool name %q means a tool of the server; choose another name", e.Tool)
	case e.By == e.Tool:
		return fmt.Sprintf("agents: the tool name %q belongs to agent %q until that one leaves; choose another name", e.Tool, e.Agent)
	}
	return fmt.Sprintf("agents: models would call %q by the same name as %q of agent %q; choose another name", e.Tool, e.By, e.Agent)
}

// Is makes errors.Is(err, ErrTaken) true.
func (e *TakenError) Is(target error) bool { return target == ErrTaken }
