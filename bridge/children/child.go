package children

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of what a spawn and a result may hold.
const (
	// MaxIDBytes bounds the id of a child, which is the name of a folder, too.
	MaxIDBytes = 128
	// MaxGoalBytes bounds a goal.
	MaxGoalBytes = 64 << 10
	// MaxTools bounds the tools that a spawn names.
	MaxTools = 256
	// MaxToolBytes bounds the name of one.
	MaxToolBytes = 128
	// MaxGrants bounds the blobs that a spawn, or a result, grants.
	MaxGrants = 64
	// MaxGrantBytes bounds the name of one.
	MaxGrantBytes = 512
	// MaxResultBytes bounds the text of a result.
	MaxResultBytes = 256 << 10
	// MaxErrorBytes bounds that of an error.
	MaxErrorBytes = 4096
	// MaxTimeout bounds how long a child may take: 30 days.
	MaxTimeout = 30 * 24 * time.Hour
	// MaxForkBytes bounds what a fork begins with.
	MaxForkBytes = 16 << 20
	// MaxPromptIDBytes bounds the id of the prompt that it is a part of.
	MaxPromptIDBytes = 128
	// MaxLimit bounds each of the other limits.
	MaxLimit = 1 << 40
)

// Errors of children. What breaks a rule is an *invalid.Error of ErrInvalid.
var (
	// ErrInvalid: a request breaks a rule.
	ErrInvalid = errors.New("children: invalid input")
	// ErrExists: the id of the child is in use.
	ErrExists = errors.New("children: the child_id is in use")
	// ErrDepth: the parent is as deep as an agent may be.
	ErrDepth = errors.New("children: the agent may have no children")
	// ErrTooMany: the parent, or its tenant, has as many children at once as it may.
	ErrTooMany = errors.New("children: too many children at once")
	// ErrNotChild: no agent has spawned it.
	ErrNotChild = errors.New("children: no such child")
	// ErrEnded: the child has its result, and can do nothing more.
	ErrEnded = errors.New("children: the child has ended")
	// ErrForkGone: what a fork begins with was erased, with its parent.
	ErrForkGone = errors.New("children: the history that the fork begins with was erased")
)

// The errors of results that the server gives itself.
const (
	// TimedOut is that of a child that took too long.
	TimedOut = "timeout"
	// Disconnected is that of one whose stream ended, and that did not come back.
	Disconnected = "disconnected"
)

// Limits bound what a child may do. A zero field is no bound.
type Limits struct {
	// Steps is how many steps it may have, StepTokens how long the text of one may be in
	// its prompts.
	Steps, StepTokens int
	// Files and Bytes are how many files its workspace may hold, and how much in them.
	Files int
	Bytes int64
	// Timeout is how long it may take.
	Timeout time.Duration
}

// DefaultLimits returns the limits of a child whose spawn sets none.
func DefaultLimits() Limits {
	return Limits{Steps: 20, StepTokens: 2000, Files: 10, Bytes: 1_000_000, Timeout: time.Minute}
}

// atMost returns the limits, each at most the other's.
func (l Limits) atMost(other Limits) Limits {
	return Limits{
		Steps: least(l.Steps, other.Steps), StepTokens: least(l.StepTokens, other.StepTokens),
		Files: least(l.Files, other.Files), Bytes: least(l.Bytes, other.Bytes), Timeout: least(l.Timeout, other.Timeout),
	}
}

// least is the lower one of two limits, of which zero is none.
func least[N cmp.Ordered](a, b N) N {
	var none N
	if a == none || b != none && b < a {
		return b
	}
	return a
}

// Asked are limits of a spawn. A nil field is the default, zero is no bound.
type Asked struct {
	Steps, StepTokens, Files *int64
	Bytes                    *int64
	Timeout                  *time.Duration
}

// over returns l with the requested limits replacing its values.
func (a Asked) over(l Limits) Limits {
	for _, f := range []struct {
		asked *int64
		to    *int
	}{{a.Steps, &l.Steps}, {a.StepTokens, &l.StepTokens}, {a.Files, &l.Files}} {
		if f.asked != nil {
			*f.to = int(*f.asked)
		}
	}
	if a.Bytes != nil {
		l.Bytes = *a.Bytes
	}
	if a.Timeout != nil {
		l.Timeout = *a.Timeout
	}
	return l
}

func (a Asked) check() error {
	for _, f := range []struct {
		name  string
		asked *int64
	}{{"limits.steps", a.Steps}, {"limits.tokens_per_step", a.StepTokens}, {"limits.files", a.Files}, {"limits.bytes", a.Bytes}} {
		if f.asked != nil && (*f.asked < 0 || *f.asked > MaxLimit) {
			return invalid.Field(ErrInvalid, f.name, "is %d, and must be from 0 to %d", *f.asked, int64(MaxLimit))
		}
	}
	if t := a.Timeout; t != nil && (*t < 0 || *t > MaxTimeout) {
		return invalid.Field(ErrInvalid, "limits.timeout", "is %s, and must be from 0 to %s", *t, MaxTimeout)
	}
	return nil
}

// Spawn asks for a child.
type Spawn struct {
	// Tenant and Parent are who spawns, ParentSession the session in which it does: its
	// steps stand there. Tenant and Parent are required.
	Tenant, Parent, ParentSession string
	// Child is the id of the child. Required; see CheckID.
	Child string
	// Goal is what it shall do, and all that it gets. Required.
	Goal string
	// SessionID is the child's session. Empty: a new one.
	SessionID string
	// Tools are the tools that it may call, a subset of its parent's. Nil: the parent's.
	Tools []string
	// Profile is the name of the profile that bounds its calls, in addition to its parents'
	// profiles. Empty: no profile.
	Profile string
	// Limits bound it: where its parent is a child, at most as that is bound.
	Limits Asked
	// Grants are names of blobs of the parent's that it may read.
	Grants []string
	// From makes a fork: a child whose prompts begin as one of its parent's did. Nil: its
	// prompts have nothing of the parent's.
	From *Point
	// RequestID makes the call safe to repeat: the same id and content again give the child
	// that is there.
	RequestID string
}

// Point is where a fork leaves its parent.
type Point struct {
	// PromptID is a prompt of the session in which it is spawned; empty for the last.
	PromptID string
}

// Result is what a child returned.
type Result struct {
	// Parent is who it is for. Empty: the agent that spawned the child; another one is an
	// *invalid.Error.
	Parent string
	// Success says whether it did its work. Text is the result, Error why there is none.
	Success     bool
	Text, Error string
	// Grants are refs of blobs of the child's that its parent may read.
	Grants []string
	// Time is when it came; Step the number of the parent's step that has it. Both are set
	// by the Spawner.
	Time time.Time
	Step uint64
}

// Child is an agent that another one has spawned. One that a Store handed out belongs to
// the receiver.
type Child struct {
	Tenant, ID, Parent string
	// Number is that of the parent's step that spawned it: children of one parent are in
	// the order of it.
	Number uint64
	// Depth is how many agents stand above it.
	Depth int
	// Goal is what it shall do, SessionID its session, ParentSession that of the parent.
	Goal, SessionID, ParentSession string
	// Tools are the tools that it may call; nil for all.
	Tools []string
	// Profile bounds its calls; empty for none.
	Profile string
	Limits  Limits
	// Time is when it was spawned, Deadline when it must have returned; zero for never.
	Time, Deadline time.Time
	// Fork is the hash of what its prompts begin with; empty for a child that is no fork.
	Fork string
	// Result is what it returned; nil as long as it lives.
	Result *Result

	requestID string
	// asks is who made it; known while it is made.
	asks   instruct.Who
	digest [32]byte
}

// Scope is the child's own.
func (c *Child) Scope() kv.Scope { return kv.AgentScope(c.Tenant, c.ID) }

// parentScope is that of its parent.
func (c *Child) parentScope() kv.Scope { return kv.AgentScope(c.Tenant, c.Parent) }

// late reports whether its time is over.
func (c *Child) late(now time.Time) bool {
	return c.Result == nil && !c.Deadline.IsZero() && !now.Before(c.Deadline)
}

// CheckID returns an *invalid.Error for an id that can't be a child's: it is the name of
// a folder.
func CheckID(id string) error {
	switch {
	case strings.TrimSpace(id) == "":
		return refuse("child_id", "is empty or blank")
	case len(id) > MaxIDBytes:
		return invalid.Field(ErrInvalid, "child_id", "has %d bytes, more than %d", len(id), MaxIDBytes)
	case !utf8.ValidString(id) || strings.ContainsAny(id, "/\\\x00") || strings.Contains(id, "..") || strings.HasPrefix(id, "."):
		return refuse("child_id", "holds / \\ .. or NUL, begins with a dot, or is not UTF-8: it is the name of a folder, too")
	}
	return nil
}

func (s *Spawn) check() error {
	if err := CheckID(s.Child); err != nil {
		return err
	}
	for _, f := range []struct {
		name, value string
		limit       int
		required    bool
	}{
		{"agent_id", s.Parent, kv.MaxOwnerBytes, true},
		{"goal", s.Goal, MaxGoalBytes, true},
		{"session_id", s.SessionID, session.MaxSessionIDBytes, false},
		{"parent_session_id", s.ParentSession, session.MaxSessionIDBytes, false},
		{"profile", s.Profile, MaxToolBytes, false},
		{"request_id", s.RequestID, kv.MaxRequestIDBytes, false},
	} {
		if err := checkText(f.name, f.value, f.limit, f.required); err != nil {
			return err
		}
	}
	if s.Child == s.Parent {
		return refuse("child_id", "is the parent itself")
	}
	if err := checkNames("tools", s.Tools, MaxTools, MaxToolBytes); err != nil {
		return err
	}
	if s.From != nil {
		if s.Tools != nil {
			return refuse("tools", "cannot be combined with fork_from: a fork has its parent's tools")
		}
		if err := checkText("fork_from", s.From.PromptID, MaxPromptIDBytes, false); err != nil {
			return err
		}
	}
	if err := checkNames("grants", s.Grants, MaxGrants, MaxGrantBytes); err != nil {
		return err
	}
	return s.Limits.check()
}

func (r *Result) check() error {
	if r.Success && strings.TrimSpace(r.Text) == "" {
		return refuse("result", "is empty or blank")
	}
	if err := checkText("result", r.Text, MaxResultBytes, false); err != nil {
		return err
	}
	if err := checkText("error", r.Error, MaxErrorBytes, false); err != nil {
		return err
	}
	if r.Success && r.Error != "" {
		return refuse("error", "is that of a result without success")
	}
	return checkNames("grants", r.Grants, MaxGrants, MaxGrantBytes)
}

func checkText(field, value string, limit int, required bool) error {
	switch {
	case required && strings.TrimSpace(value) == "":
		return refuse(field, "is empty or blank")
	case len(value) > limit:
		return invalid.Field(ErrInvalid, field, "has %d bytes, more than %d", len(value), limit)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return refuse(field, "holds NUL or is not UTF-8")
	}
	return nil
}

func checkNames(field string, names []string, most, bytes int) error {
	if len(names) > most {
		return invalid.Field(ErrInvalid, field, "are %d, more than %d", len(names), most)
	}
	for i, name := range names {
		if err := checkText(fmt.Sprintf("%s[%d]", field, i), name, bytes, true); err != nil {
			return err
		}
	}
	return nil
}

func refuse(field, problem string) error { return invalid.Field(ErrInvalid, field, "%s", problem) }
