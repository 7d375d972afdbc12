package main

import (
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// toolPattern is a setting that names tools.
type toolPattern struct {
	setting, pattern string
	// exact says that a further name of a tool, such as read_file, does not mean it.
	exact bool
}

// toolPatterns are the settings that name tools which need not be there yet. A tool of
// --tool-level must be.
func (c Config) toolPatterns() (all []toolPattern) {
	for _, r := range c.Sharing.ToolLimits {
		all = append(all, toolPattern{"tool-limits", r.Tool, true})
	}
	for _, name := range c.Prompts.ToolNames {
		all = append(all, toolPattern{keyToolNames, name, false})
	}
	if c.Policies != nil {
		for i, b := range c.Policies.Bindings() {
			all = append(all, toolPattern{fmt.Sprintf("bind[%d].tool", i), b.Tool, true})
		}
	}
	return all
}

// warnOfTools warns of settings that name no tool of the server and of no MCP server: an agent
// may bring it later, but most are misspelt, and what they should limit or ask about is neither.
func (c Config) warnOfTools(own *tools.Registry, servers []mcp.Status, logger *slog.Logger) {
	var names []string
	for _, d := range own.List() {
		names = append(names, d.Name)
	}
	for _, p := range c.toolPatterns() {
		before, _, foreign := strings.Cut(p.pattern, ":")
		switch {
		case p.pattern == "", slices.ContainsFunc(names, func(name string) bool { ok, err := path.Match(p.pattern, name); return ok || err != nil }):
			continue
		case foreign && slices.ContainsFunc(servers, func(s mcp.Status) bool { return s.Name == before }):
			continue
		}
		hint := text.Nearest(p.pattern, names)
		if t, ok := own.Find(p.pattern); ok {
			if hint = t.Descriptor().Name; !p.exact {
				continue
			}
		}
		logger.Warn("a setting names no tool of this server: it is in force only if an agent or an MCP server brings a tool of that name", "setting", p.setting, "tool", p.pattern, "nearest", hint)
	}
}
