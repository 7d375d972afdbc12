package assemble

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// toolset is the tools of a request in their final order and form. It never
// changes.
type toolset struct {
	render.Tools

	// costs are what each takes, by its own name.
	costs []record.ToolCost
}

// maxToolsets bounds the toolsets that are remembered: agents offer the same
// tools with every prompt.
const maxToolsets = 64

// toolset returns the tools of a request, made anew only if they are.
func (a *Assembler) toolset(r Request) (toolset, error) {
	key := toolsKey(r)
	if set, ok := a.sets.Get(key); ok {
		return set, nil
	}
	set, err := newToolset(r.Tools, r.Format)
	if err != nil {
		return toolset{}, err
	}
	if set.Count, err = a.counter.Tools(r.Model, set.Counted); err != nil {
		return toolset{}, fmt.Errorf("assemble: count tools: %w", err)
	}
	if err := a.price(r.Model, &set); err != nil {
		return toolset{}, err
	}
	a.sets.Put(key, set, 1)
	return set, nil
}

// price counts what each tool takes, without what all of them take once.
func (a *Assembler) price(model string, set *toolset) error {
	shared := 0
	for i := range set.Counted {
		n, err := a.counter.Tools(model, set.Counted[i:i+1])
		if err != nil {
			return fmt.Errorf("assemble: count tools: %w", err)
		}
		set.costs[i].Tokens = n.Tokens
		shared += n.Tokens
	}
	if n := len(set.costs); n > 1 {
		shared = (shared - set.Count.Tokens) / (n - 1)
		for i := range set.costs {
			set.costs[i].Tokens -= shared
		}
	}
	return nil
}

// toolsKey distinguishes toolsets, with what they are for.
func toolsKey(r Request) (key [sha256.Size]byte) {
	h := sha256.New()
	text := func(s string) {
		h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	text(r.Model)
	h.Write([]byte{byte(r.Format)})
	for i := range r.Tools {
		text(r.Tools[i].Name)
		text(r.Tools[i].Description)
		text(string(r.Tools[i].Schema))
	}
	h.Sum(key[:0])
	return key
}

// newToolset sorts the tools by name and writes them as canonical JSON, so that the same
// tools are the same bytes in every prompt. The caller's own stand
// first in given, in their order.
func newToolset(given []Tool, format Format) (toolset, error) {
	tools := slices.Clone(given)
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	set := toolset{}
	list := make([]provider.Tool, 0, len(tools))
	for _, tool := range tools {
		name, _ := format.ToolName(tool.Name)
		schema, ok := schemaOf(tool.Schema)
		if !ok {
			at := slices.IndexFunc(given, func(t Tool) bool { return t.Name == tool.Name })
			return toolset{}, badTool(at, "parameters_schema_json", "is not a JSON object")
		}
		list = append(list, provider.Tool{Name: name, Description: tool.Description, Schema: schema})
		set.costs = append(set.costs, record.ToolCost{Name: tool.Name})
		set.Counted = append(set.Counted, tokens.ToolDefinition{Name: name, Description: tool.Description, Schema: tool.Schema})
	}
	set.JSON = provider.Tools(format, list)
	return set, nil
}

// schemaOf decodes a tool's schema; false where it is no JSON object.
func schemaOf(schema json.RawMessage) (map[string]any, bool) {
	if len(schema) == 0 {
		return map[string]any{"type": "object", "properties": map[string]any{}}, true
	}
	v, err := text.DecodeJSON(schema)
	object, ok := v.(map[string]any)
	return object, err == nil && ok && json.Valid(schema)
}

// Served is a tool that the server runs, or an attached agent.
type Served struct {
	Tool
	// Level is 1 to 3.
	Level int
	// AgentID is who runs it; empty for the server's own.
	AgentID string
	// Foreign says that others than the server say what it does.
	Foreign bool
	// ByName says that it is offered only where a setting or a skill names it.
	ByName bool
}

// levelsShown are the levels whose tools stand in prompts by default.
var levelsShown = []int{1}

// offered returns the tools of the prompt: the served tools that the settings and active
// skills choose, and the caller's own, which override them.
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
	for _, s := range t.served {
		if name, _ := t.r.Format.ToolName(s.Name); !taken[name] && (t.named(s.Name, choice) || !choice.None && s.AgentID == "" && !s.ByName && slices.Contains(choice.Levels, s.Level)) {
			taken[name] = true
			out = append(out, s.Tool)
		}
	}
	return out
}

// findServed finds the tools that the agent can call.
func (t *task) findServed(ctx context.Context) (err error) {
	if t.a.served == nil || t.r.WithoutTools {
		return nil
	}
	if t.served, err = t.a.served(ctx, t.r.Scope, t.r.Format); err != nil {
		return fmt.Errorf("assemble: tools of %s: %w", t.r.Scope, err)
	}
	return nil
}

// named reports whether the settings, or an active skill, choose a tool by its name.
func (t *task) named(name string, choice settings.Tools) bool {
	matches := func(pattern string) bool { return matchesName(pattern, name) }
	return !choice.None && slices.ContainsFunc(choice.Names, matches) || slices.ContainsFunc(t.skillTools, matches)
}

// matchesName reports whether a name matches a pattern, in which `*` stands for any
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
