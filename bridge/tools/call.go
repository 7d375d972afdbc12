package tools

import (
	"context"
	"io"
	"os"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Input is one call as the tool sees it. Its arguments were checked against the
// schema.
type Input struct {
	// Scope is the agent that calls.
	Scope kv.Scope
	// SessionID is the session the call belongs to, CallID the caller's own name of the call,
	// Tool the registered name of the tool.
	SessionID, CallID, Tool string
	// Root is the agent's workspace. The caller of the tool owns it: the tool
	// must not close it.
	Root *os.Root
	// Args are the arguments; numbers are json.Number. The tool may not change
	// them.
	Args map[string]any
	// Profile is what the call may do. The zero Profile is that of a caller who has none:
	// the workspace, and no network.
	Profile policy.Profile
	// ListedPrograms lets the call run only the programs of a list, although it is confined:
	// agents of loom.v1 ask their users about others.
	ListedPrograms bool
	// Room is what the call may add to the workspace; nil for any amount.
	Room *Room
	// Closed reports whether an entry of the workspace, by its name, belongs to another
	// agent alone. Nil: none does.
	Closed func(name string) bool
	// Ask asks a person for something beyond the profile, and waits for the answer. It
	// returns nil when it was allowed, an *Error with PermissionDenied when it was not, or
	// the error of ctx. Nil where no person can be asked: use Need.
	Ask func(ctx context.Context, c policy.Capability) error
	// Approved is what a person was shown of this call before it was allowed; nil where
	// no person was asked. It is still the same when the tool begins.
	Approved []PreviewPart
	// Report reports how far the call has come. It does not block. Nil where
	// there is no listener.
	Report func(p Progress)
}

// Progress is how far a call has come.
type Progress struct {
	// Done grows; Total is what it will be in the end, 0 where that is not known.
	Done, Total float64
	// Message is for people; may be empty.
	Message string
}

// Need asks for something beyond the profile, as Ask does; where no person can be asked it is
// denied.
func (c Input) Need(ctx context.Context, what policy.Capability) error {
	if c.Ask == nil {
		return &Error{
			Code: PermissionDenied, Message: "Permission denied: " + what.Kind + " " + what.Name + " is outside of what this call may use",
			Cause: policy.ErrUnattended,
		}
	}
	return c.Ask(ctx, what)
}

// String returns the text argument of that name, or fallback when it is
// missing or no text.
func (c Input) String(name, fallback string) string {
	if s, ok := c.Args[name].(string); ok {
		return s
	}
	return fallback
}

// Bool returns the boolean argument of that name; false when it is missing.
func (c Input) Bool(name string) bool {
	b, _ := c.Args[name].(bool)
	return b
}

// Int returns the whole-number argument of that name and whether it is there.
// Numbers beyond int64, and such as 1.0 that only a schema calls whole, are
// taken as far as they go: see Integer.
func (c Input) Int(name string) (int64, bool) { return Integer(c.Args[name]) }

// Func runs a tool. It must end soon after ctx does. A failure of the tool's
// own is an *Error; an *ArgumentsError refuses the call; any other error is a
// failure with the code Failed. It may be called by many goroutines at once.
type Func func(ctx context.Context, in Input) (Output, error)

// Output is what a tool gives. Its parts belong to the receiver.
type Output struct {
	// Values are the result as JSON values (what encoding/json decodes into, or
	// int64 for numbers), without the body. The receiver may add to it. Where there is
	// a body, the tool may do so too, until the body was read to its end or closed.
	Values map[string]any
	// ValueKey names the member of Values that is the whole answer, for a result
	// that is no object. Default: all of Values.
	ValueKey string
	// BodyKey is the key of Values under which the body's text is shown; empty
	// when there is no body.
	BodyKey string
	// Body is long text or bytes, read once and closed by the receiver. An error
	// while it is read fails the call.
	Body io.ReadCloser
	// BodySize is about how many bytes the body has; zero when not known.
	BodySize int64
	// BodyLossy says that the body is shown as text even where it is not UTF-8, with
	// U+FFFD in place of what is not, to callers who take no bytes.
	BodyLossy bool
	// BodyPaged says that the tool takes a line number, offset, or a number of
	// bytes, offset_bytes, to read on from where shown text was cut.
	BodyPaged bool
	// File is the path, relative to the workspace, of the file that Body is the
	// whole content of; empty for anything else.
	File string
	// Blob says that the body is read from this blob, whole or in part, so that
	// it is not stored again; nil for anything else.
	Blob *blob.Entry
	// Origin is the path under which the body can be read again when it is a step
	// or a message of the log, so that it is not stored again; empty for anything
	// else.
	Origin string
	// Given is the result as an agent gave it, for a tool of an agent's: exact JSON
	// text, whose values are Values, or text or bytes, which stand for everything
	// else here. Default: Values and Body are the result.
	Given step.Original
	// Brief stands for the result with callers who take one JSON value and keep no bytes,
	// where that is not the result itself. Default nil: it is.
	Brief any
	// Tier is how the process that the tool started was confined, for the audit; empty if it
	// started none. It is valid together with an error, too.
	Tier string
	// Written describes a file that the call has written; nil when it wrote none.
	Written *Written
	// Join is what the call does to the store, in the commit of its step; nil for
	// nothing.
	Join *Join
}

// Join is a change that is committed together with a step: both or neither.
type Join struct {
	// Refs and Blind are as in kv.Request.
	Refs, Blind []kv.Ref
	// Stage does the work under the rules of kv.Stage, given the number of the step. If it
	// returns an error, the step is not recorded either.
	Stage func(ctx context.Context, tx *kv.Tx, step uint64) error
	// End hears once what came of the commit: nil when it was made, kv.ErrUnknownOutcome
	// where it is unknown. Nil: it is not asked for.
	End func(err error)
}

// Room is what a call may still put into its agent's workspace.
type Room struct {
	// Files is how many files it may add; negative for any number.
	Files int
	// Bytes is how much the workspace may grow; negative for any amount.
	Bytes int64
	// MaxFiles and MaxBytes are the limits that leave that much, for errors.
	MaxFiles int
	MaxBytes int64
}

// Check returns a *LimitError if so many files and bytes more are over the room. Nil is
// room for all.
func (r *Room) Check(files int, bytes int64) error {
	switch {
	case r == nil:
		return nil
	case r.Files >= 0 && files > r.Files:
		return &AgentLimitError{Limit: LimitFiles, Max: int64(r.MaxFiles)}
	case r.Bytes >= 0 && bytes > r.Bytes:
		return &AgentLimitError{Limit: LimitBytes, Max: r.MaxBytes}
	}
	return nil
}

// Written is what a tool says about a file it has written.
type Written struct {
	// File is its path relative to the workspace.
	File string
	// SHA256 is the hash of the whole file as it is now, in hex; empty when the
	// tool did not compute it.
	SHA256 string
}
