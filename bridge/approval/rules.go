package approval

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// Mode says which calls need the approval of a person. The zero Mode is OnLeave.
type Mode string

// The modes. A level is written `level:3`: it asks for tools of that level and above, too.
const (
	// Never asks nobody: a tool that requires approval is denied.
	Never Mode = "never"
	// OnLeave asks for what leaves the profile: today, tools that require approval.
	OnLeave Mode = "on-leave"
	// ByTool asks for tools that require approval, and for nothing else.
	ByTool Mode = "tool"
	// Always asks for every call.
	Always Mode = "always"

	levelPrefix = "level:"
)

// level is the lowest level that a mode asks for; false for a mode without one.
func (m Mode) level() (int, bool) {
	text, ok := strings.CutPrefix(string(m), levelPrefix)
	level, err := strconv.Atoi(text)
	return level, ok && err == nil && level >= tools.LevelFunction && level <= tools.LevelScript
}

// Asks tells whether a call of a tool needs approval.
func (m Mode) Asks(d tools.Descriptor) bool {
	level, ok := m.level()
	return d.RequiresApproval || m == Always || ok && d.Level >= level
}

func (m Mode) check() error {
	switch m {
	case "", Never, OnLeave, ByTool, Always:
		return nil
	}
	if _, ok := m.level(); !ok {
		return fmt.Errorf("approval %q is not never, on-leave, tool, always or level:1 to level:3", m)
	}
	return nil
}

// Rule is one binding. Patterns are exact, or a beginning and *; an empty one matches all.
type Rule struct {
	Tenant   string `toml:"tenant"`
	Agent    string `toml:"agent"`
	Tool     string `toml:"tool"`
	Approval Mode   `toml:"approval"`
}

// MaxRules bounds the rules: each call goes through them.
const MaxRules = 1000

// Rules are bindings in their order.
type Rules []Rule

// Check returns what is wrong with the rules, naming the first that is.
func (r Rules) Check() error {
	if len(r) > MaxRules {
		return fmt.Errorf("has %d bindings, at most %d are taken", len(r), MaxRules)
	}
	for i, rule := range r {
		if err := rule.Approval.check(); err != nil {
			return fmt.Errorf("bind[%d]: %w", i, err)
		}
		for _, pattern := range []string{rule.Tenant, rule.Agent, rule.Tool} {
			if at := strings.IndexByte(pattern, '*'); at >= 0 && at != len(pattern)-1 {
				return fmt.Errorf("bind[%d]: pattern %q has a * that is not its end", i, pattern)
			}
		}
	}
	return nil
}

// For is the first rule that matches a call; the zero Rule when none does.
func (r Rules) For(tenant, agent, tool string) Rule {
	for _, rule := range r {
		if matches(rule.Tenant, tenant) && matches(rule.Agent, agent) && matches(rule.Tool, tool) {
			return rule
		}
	}
	return Rule{}
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == "" || pattern == name
}
