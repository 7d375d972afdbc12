package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of spaces and grants.
const (
	// MaxSpaces bounds the spaces of a tenant.
	MaxSpaces = 1000
	// MaxSpacesMade bounds the spaces that one agent made, so that none takes all names.
	MaxSpacesMade = 100
	// MaxGrants bounds the grants of one memory.
	MaxGrants = 256
	// MaxPatternBytes bounds a pattern.
	MaxPatternBytes = kv.MaxOwnerBytes
)

// Errors of grants.
var (
	// ErrDenied: the agent has not the access that a call needs; *DeniedError says which.
	ErrDenied = errors.New("grants: access denied")
	// ErrInvalid: something breaks a rule; *invalid.Error says what.
	ErrInvalid = errors.New("grants: invalid input")
	// ErrExists: the agent has access to a space of that name already.
	ErrExists = errors.New("grants: space exists")
	// ErrLastAdmin: a space would be left without an administrator.
	ErrLastAdmin = errors.New("grants: the space would have no admin; grant admin to another agent first, or delete the space")
	// ErrNotFound: the pattern has no grant.
	ErrNotFound = errors.New("grants: nothing is granted to that pattern")
	// ErrFull: there are as many spaces or grants as there may be.
	ErrFull = errors.New("grants: too many")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("grants: closed")
)

// Level is what an agent may do with a memory. Each includes those below.
type Level uint8

// The levels. The numbers are part of the on-disk format and of the API.
const (
	None Level = iota
	Read
	Write
	Admin
)

// String returns `none`, `read`, `write` or `admin`.
func (l Level) String() string {
	switch l {
	case None:
		return "none"
	case Read:
		return "read"
	case Write:
		return "write"
	case Admin:
		return "admin"
	}
	return "unknown"
}

// Grant is access that was given.
type Grant struct {
	// Pattern is the id of an agent, or the beginning of ids and `*`.
	Pattern string
	Level   Level
	// By is the agent that gave it, Time when.
	By   string
	Time time.Time
}

// Space is a space as one agent sees it.
type Space struct {
	Name string
	// Level is what the agent may do.
	Level Level
	Time  time.Time // when it was made
}

// Matches reports whether a name fits a pattern: it is the same, or begins with the text
// before the `*` at its end.
func Matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// DeniedError says what a call would have needed. It is an ErrDenied. It says no more of a
// space that is there than of an absent one.
type DeniedError struct {
	Agent string
	Scope kv.Scope
	Need  Level
}

func (e *DeniedError) Error() string {
	what := "space"
	if e.Scope.Kind == kv.OwnerUser {
		what = "memory of user"
	}
	return fmt.Sprintf("grants: agent %q has no %s access to the %s %q", e.Agent, e.Need, what, e.Scope.Owner)
}

// Is makes errors.Is(err, ErrDenied) true.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// Caller is who makes a call, beyond the agent that it names.
type Caller struct {
	// Users says which access the caller's credential gives it to a person's memory. Nil:
	// none, so that grants alone count.
	Users func(user string) Level
	// Operates: the caller runs the server, so it may delete a space that no agent can.
	Operates bool
}

type callerKey struct{}

// With returns ctx as that of a call of that caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is who makes the call behind ctx.
func callerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// static is what the caller behind ctx may do with a memory without any grant.
func static(ctx context.Context, scope kv.Scope) Level {
	c := callerOf(ctx)
	if scope.Kind != kv.OwnerUser || c.Users == nil {
		return None
	}
	return c.Users(scope.Owner)
}

// memory is the stored form of a memory that is shared. It does not change.
type memory struct {
	raw []byte // as it is stored; nil for nothing
	// maker made the space, at a time; both are empty for a person's memory.
	maker string
	made  time.Time
	// leaving: the space is being deleted, and no caller has access.
	leaving bool
	grants  []Grant // by pattern
}

// level is the highest that an agent is granted.
func (m *memory) level(agent string) Level {
	highest := None
	if m.leaving {
		return highest
	}
	for i := range m.grants {
		if g := &m.grants[i]; g.Level > highest && Matches(g.Pattern, agent) {
			highest = g.Level
		}
	}
	return highest
}

// of is the highest level that all of some agents are granted.
func (m *memory) of(agents []string) Level {
	lowest := Admin
	for _, agent := range agents {
		lowest = min(lowest, m.level(agent))
	}
	return lowest
}

// admins reports whether somebody administers the memory.
func (m *memory) admins() bool {
	return slices.ContainsFunc(m.grants, func(g Grant) bool { return g.Level == Admin })
}

// find is the place of the grant to a pattern, or where it belongs.
func (m *memory) find(pattern string) (int, bool) {
	return slices.BinarySearchFunc(m.grants, pattern, func(g Grant, p string) int { return strings.Compare(g.Pattern, p) })
}
