package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Approval says which calls need the approval of a person.
type Approval string

// The approvals. A level is written `level:3`: it asks for tools of that level and above,
// too. The zero Approval is OnLeave.
const (
	// Never asks no person: a call that needs approval is denied.
	Never Approval = "never"
	// OnLeave asks for what leaves the profile, and for tools that require approval.
	OnLeave Approval = "on-leave"
	// ByTool asks for tools that require approval, and for nothing else: what leaves the
	// profile is denied.
	ByTool Approval = "tool"
	// Always asks for every call.
	Always Approval = "always"

	levelPrefix = "level:"
	// The levels of tools, as package tools has them.
	minLevel, maxLevel = 1, 3
)

// Level is the lowest level that it asks for; false for one without a level.
func (a Approval) Level() (int, bool) {
	text, ok := strings.CutPrefix(string(a), levelPrefix)
	level, err := strconv.Atoi(text)
	return level, ok && err == nil && level >= minLevel && level <= maxLevel
}

// Leaves reports whether a person may be asked for what leaves the profile.
func (a Approval) Leaves() bool { return a != Never && a != ByTool }

// Approvals are the rules for a call: its agent's, and its ancestors'. Each of them must let
// it pass.
type Approvals []Approval

// Leaves reports whether a person may be asked for what leaves the profile.
func (a Approvals) Leaves() bool {
	return !slices.ContainsFunc(a, func(one Approval) bool { return !one.Leaves() })
}

// String is the rules as people read them, each one once.
func (a Approvals) String() string {
	var words []string
	for _, one := range a {
		words = added(words, string(one))
	}
	return strings.Join(words, "&")
}

func (a Approval) check() string {
	switch a {
	case "", Never, OnLeave, ByTool, Always:
		return ""
	}
	if _, ok := a.Level(); ok {
		return ""
	}
	return fmt.Sprintf("%q is not %s, %s, %s, %s or level:1 to level:3", string(a), Never, OnLeave, ByTool, Always)
}

// Binding gives calls a profile, or says which need approval, or both. Patterns are exact,
// or a beginning and *; an empty one matches all.
type Binding struct {
	Tenant, Agent, Tool string
	// Profile is the name of a profile; empty says nothing of it.
	Profile string
	// Approval says which calls need a person; empty says nothing of it.
	Approval Approval
}

// order is how near a binding's patterns come to a call; false when they do not match.
type order [3]int

func (b Binding) matches(tenant, agent, tool string) (o order, ok bool) {
	for i, pair := range [][2]string{{b.Tenant, tenant}, {b.Agent, agent}, {b.Tool, tool}} {
		pattern, name := pair[0], pair[1]
		begin, open := strings.CutSuffix(pattern, "*")
		switch {
		case pattern == "", open && strings.HasPrefix(name, begin):
			o[i] = len(begin)
		case pattern == name:
			o[i] = math.MaxInt
		default:
			return o, false
		}
	}
	return o, true
}

// beats reports whether an order is nearer to the call than another one: by tenant, then by
// agent, then by tool.
func (o order) beats(other order) bool {
	return cmp.Or(cmp.Compare(o[0], other[0]), cmp.Compare(o[1], other[1]), cmp.Compare(o[2], other[2])) > 0
}

// nearest returns the binding nearest to a call for which says is true; nil if there is
// none. Of two equally near ones the first counts.
func (s *Set) nearest(tenant, agent, tool string, says func(Binding) bool) *Binding {
	var found *Binding
	var best order
	for i := range s.bindings {
		if !says(s.bindings[i]) {
			continue
		}
		if o, ok := s.bindings[i].matches(tenant, agent, tool); ok && (found == nil || o.beats(best)) {
			found, best = &s.bindings[i], o
		}
	}
	return found
}

// Approval says which calls of an agent's tool need approval.
func (s *Set) Approval(tenant, agent, tool string) Approval {
	if b := s.nearest(tenant, agent, tool, func(b Binding) bool { return b.Approval != "" }); b != nil {
		return b.Approval
	}
	return OnLeave
}

// For is the operator's profile for calls of an agent's tool.
func (s *Set) For(tenant, agent, tool string) Profile {
	if b := s.nearest(tenant, agent, tool, func(b Binding) bool { return b.Profile != "" }); b != nil {
		return s.profiles[b.Profile]
	}
	return s.profiles[Default]
}
