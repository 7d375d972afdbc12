package hand

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// Request is one tool call.
type Request struct {
	// Scope is the agent that calls. Required.
	Scope kv.Scope
	// SessionID is the session whose log gets the step. Default
	// session.DefaultSession.
	SessionID string
	// Name is the tool's name, or one that Catalogue.Find takes for it.
	Name string
	// Args is the JSON text of the arguments object. Default: no arguments.
	Args json.RawMessage
	// Timeout ends the call. Default DefaultTimeout, at most MaxTimeout.
	Timeout time.Duration
	// Thought is what the model said before the call; at most MaxThoughtBytes.
	Thought string
	// TurnID holds parallel calls together, CallID is the model's own id of the
	// call, at most MaxIDBytes and session.MaxCallIDBytes. Without a RequestID the same call
	// again under the
	// same CallID, in the same turn and session, gives the first answer. Without a TurnID
	// that holds only for tools that change something: some models count their calls anew
	// in each turn, and what is read twice must not be out of date.
	TurnID, CallID string
	// RequestID makes the call safe to repeat; at most MaxIDBytes. The same id with
	// another call is refused.
	RequestID string
	// Pinned keeps the step in every prompt as it is.
	Pinned bool
	// ListedPrograms is that of tools.Input.
	ListedPrograms bool
	// MaxOutput bounds the JSON text that Run gives; Call ignores it. Default
	// MaxOutputBytes.
	MaxOutput int
}

// Answer is what came of a call. It belongs to the receiver.
type Answer struct {
	// Success says whether the tool did its work.
	Success bool
	// Output is the result as JSON: as an agent gave it, or compact with sorted
	// keys; nil after failure, and where Bytes has it.
	Output json.RawMessage
	// Bytes is a result that is bytes; nil for any other, and where they are too
	// long to be shown.
	Bytes *step.Original
	// ErrorMessage and ErrorCode say what went wrong; empty after success.
	ErrorMessage string
	ErrorCode    tools.Code
	// Truncated says that text in Output was cut, or bytes left out.
	Truncated bool
	// Blob is where the full result lies; nil when it was not offloaded.
	Blob *blob.Entry
	// Step is what the log keeps, Position its place in the session; nil and
	// zero when Recorded is false.
	Step     *step.Step
	Position uint64
	// TaskID names the task that was added with the step; empty without one.
	TaskID string
	// Observation is the text for the model.
	Observation string
	// Recorded is false when the tool ran but the log could not be written;
	// RecordError is then the reason, such as kv.ErrFull.
	Recorded    bool
	RecordError error
	// Redacted counts the secrets that were taken out of the call and its result, by
	// pattern; nil for a Replayed answer.
	Redacted redact.Counts
	// Replayed says that this is the answer an equal request got before.
	Replayed bool
	// Collected says that the blob with the full result, which that answer had, was
	// collected since: Blob is nil, and nothing has it any more.
	Collected bool
}

// call is a request that was checked.
type call struct {
	Request
	tool *tools.Tool
	// asked is what came of asking people, shown what they saw of a call that had to be
	// allowed before it began; nil where it was shown to no person.
	asked approvalState
	shown *approval.Sheet
	// profile is what it may do; the zero Profile until that was found, and for tools of
	// agents.
	profile policy.Profile
	slot    *share.Holding
	// limited is how it counts for the limits of tools; nil where none is about it.
	limited *throttle.Call
	args    map[string]any
	// kept and keptArgs are the arguments as they are recorded, without secrets; redacted
	// counts the secrets removed from the request.
	kept     map[string]any
	keptArgs json.RawMessage
	redacted redact.Counts
	came     time.Time // when the call came in
	digest   [32]byte
	// once is the id under which the answer is kept: RequestID, or an id derived from the
	// call; empty for a call that may run again.
	once    string
	timeout time.Duration
	// intent is the id of the intent in the log, empty without one.
	intent string
	// bridge is the registration of this server that the intent belongs to.
	bridge string
	// mistake is what was wrong with a call that a model made and that did not run; nil for
	// any other.
	mistake *tools.Error
	// reported says that the caller ran the tool.
	reported bool
	// bounds are the agent's limits, exempt says that they do not apply.
	bounds Bounds
	exempt bool
	// task is added with the step; nil without one.
	task *session.Task
	// tier is how the tool's process was confined, for a call that is not recorded.
	tier string
	// observed is how much the observations of its session say; nil until that was read.
	observed *step.ObservationStyle
	// asItCame says that the text of the arguments goes out as it came.
	asItCame bool
	// whole asks for all of the body, and for nothing to be stored.
	whole bool
	// late is closed when a tool that was left alone has ended; nil otherwise.
	late chan struct{}
}

func (c *call) name() string { return c.tool.Descriptor().Name }

// check converts a request that came at a time into a call, or says why it can't be one. Named
// refuses arguments that the tool does not know.
func (h *Hand) check(req Request, came time.Time, named bool) (*call, error) {
	if err := checkFields(&req); err != nil {
		return nil, err
	}
	args, err := tools.ParseArguments(req.Args)
	tool, lookupErr := h.Tools.Lookup(req.Scope.Tenant, req.Name)
	if err != nil {
		return nil, withSchema(err, tool)
	}
	if lookupErr != nil {
		return nil, lookupErr
	}
	if err := tool.Check(args); err != nil {
		return nil, err
	}
	if named {
		if err := tool.CheckNames(args); err != nil {
			return nil, err
		}
	}
	c := &call{Request: req, tool: tool, args: args, came: came, timeout: req.Timeout}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	c.timeout = min(c.timeout, MaxTimeout)
	byCall := req.CallID != "" && (req.TurnID != "" || tool.Descriptor().Mutates)
	if c.once = req.RequestID; c.once != "" || byCall {
		c.digest = digest(c, "tool")
	}
	if c.once == "" && byCall {
		c.once = onceOfCall(c.digest)
	}
	h.redactCall(c)
	return c, nil
}

// callMark begins the ids that are made of calls. No request id has a NUL.
const callMark = "\x00call:"

// onceOfCall is the id under which the answer of a call with a CallID is kept. It holds for
// the whole call: models whose ids repeat, with other arguments, mean another call.
func onceOfCall(digest [32]byte) string { return callMark + hex.EncodeToString(digest[:]) }

// requestID is the request id behind an id under which an answer is kept; empty where a
// call id was behind it.
func requestID(once string) string {
	if strings.HasPrefix(once, callMark) {
		return ""
	}
	return once
}

// withSchema completes what a tool, or the parser, says about arguments.
func withSchema(err error, tool *tools.Tool) error {
	if bad, ok := errors.AsType[*tools.ArgumentsError](err); ok && tool != nil {
		bad.Tool, bad.Schema = tool.Descriptor().Name, tool.Schema()
	}
	return err
}

func checkFields(req *Request) error {
	if err := req.Scope.Validate(); err != nil {
		return err
	}
	if req.SessionID == "" {
		req.SessionID = session.DefaultSession
	}
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"session_id", req.SessionID, session.MaxSessionIDBytes},
		{"thought", req.Thought, MaxThoughtBytes},
		{"turn_id", req.TurnID, MaxIDBytes},
		{"call_id", req.CallID, session.MaxCallIDBytes},
		{"request_id", req.RequestID, MaxIDBytes},
	} {
		switch {
		case len(f.value) > f.limit:
			return invalid.Field(ErrInvalid, f.name, "is longer than %d bytes", f.limit)
		case !utf8.ValidString(f.value) || f.name != "thought" && strings.IndexByte(f.value, 0) >= 0:
			return invalid.Field(ErrInvalid, f.name, "holds NUL or is not UTF-8")
		}
	}
	return nil
}

// digest is the hash of everything that makes two requests the same call: kind
// says of which sort it is, and more what that sort adds.
func digest(c *call, kind string, more ...[]byte) [32]byte {
	if c.Pinned {
		more = append(more, []byte("pinned"))
	}
	name := c.name()
	if c.reported {
		// Which tool a name means may change between two attempts.
		name = c.Name
	}
	h := sha256.New()
	for _, part := range append([][]byte{
		[]byte(kind), []byte(c.SessionID), []byte(name), text.CanonicalJSON(c.args),
		[]byte(c.Thought), []byte(c.TurnID), []byte(c.CallID),
	}, more...) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}
