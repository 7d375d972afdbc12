package assemble

import (
	"path"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// Served is a tool that the server runs, or an attached agent.
type Served struct {
	Tool
	// Level is 1 to 3.
	Level int
	// AgentID is who runs it; empty for the server's own.
	AgentID string
}

// levelsShown are the levels whose tools stand in prompts by default.
var levelsShown = []int{1}

// offered are the tools of the prompt: those of the served ones that the settings and
// the active skills choose, and the caller's own, which win.
func (t *task) offered() []Tool {
	if t.r.WithoutTools {
		return nil
	}
	own := t.r.Tools
	if t.a.served == nil {
		return own
	}
	choice := settings.Tools{}
	if t.prompt.Tools != nil {
		choice = *t.prompt.Tools
	}
	if len(choice.Levels) == 0 {
		choice.Levels = levelsShown
	}
	taken := make(map[string]bool, len(own))
	for i := range own {
		name, _ := t.r.Format.ToolName(own[i].Name)
		taken[name] = true
	}
	out := slices.Clone(own)
	for _, s := range t.a.served(t.r.Scope.Tenant, t.r.Format) {
		if name, _ := t.r.Format.ToolName(s.Name); !taken[name] && (t.named(s.Name, choice) || !choice.None && s.AgentID == "" && slices.Contains(choice.Levels, s.Level)) {
			out = append(out, s.Tool)
		}
	}
	return out
}

// named tells whether the settings, or an active skill, choose a tool by its name.
func (t *task) named(name string, choice settings.Tools) bool {
	matches := func(pattern string) bool { return matchesName(pattern, name) }
	return !choice.None && slices.ContainsFunc(choice.Names, matches) || slices.ContainsFunc(t.skillTools, matches)
}

// matchesName tells whether a name matches a pattern, in which `*` stands for any
// number of characters.
func matchesName(pattern, name string) bool {
	if pattern == name {
		return true
	}
	// A name of a tool has no slash that a star should stop at.
	ok, err := path.Match(noSlashes(pattern), noSlashes(name))
	return ok && err == nil
}

func noSlashes(s string) string {
	out := []byte(s)
	for i := range out {
		switch out[i] {
		case '/':
			out[i] = 1
		case '?', '[', ']', '\\':
			out[i] = 2
		}
	}
	return string(out)
}
