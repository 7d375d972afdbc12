package frame

import (
	"bytes"
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
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Toolset is the tools of a prompt in their final order and form. It never
// changes.
type Toolset struct {
	render.Tools

	// Costs are what each takes, by its own name.
	Costs []record.ToolCost
}

// Tool is a tool to offer.
type Tool struct {
	// Name is its registered name, such as "fs:read_file".
	Name string
	// Description says what it does.
	Description string
	// Schema is the JSON Schema of its arguments; nil means no arguments.
	Schema json.RawMessage
}

// maxToolsets bounds the toolsets that are remembered: agents offer the same
// tools with every prompt.
const maxToolsets = 64

// toolset returns tools in their form, made anew only if they are. key is theirs.
func (s *Stage) toolset(key [sha256.Size]byte, model string, format provider.Format, tools []Tool) (Toolset, error) {
	if set, ok := s.sets.Get(key); ok {
		return set, nil
	}
	set, err := newToolset(tools, format)
	if err == nil {
		err = s.count(model, &set)
	}
	if err != nil {
		return Toolset{}, err
	}
	s.sets.Put(key, set, 1)
	return set, nil
}

// count counts tools: all of them, and what each takes without what all of them take once.
func (s *Stage) count(model string, set *Toolset) (err error) {
	if set.Count, err = s.Counter.Tools(model, set.Counted); err != nil {
		return fmt.Errorf("assemble: count tools: %w", err)
	}
	shared := 0
	for i := range set.Counted {
		n, err := s.Counter.Tools(model, set.Counted[i:i+1])
		if err != nil {
			return fmt.Errorf("assemble: count tools: %w", err)
		}
		set.Costs[i].Tokens = n.Tokens
		shared += n.Tokens
	}
	if n := len(set.Costs); n > 1 {
		shared = (shared - set.Count.Tokens) / (n - 1)
		for i := range set.Costs {
			set.Costs[i].Tokens -= shared
		}
	}
	return nil
}

// keyedTools are tools with their toolsKey.
type keyedTools struct {
	model  string
	format provider.Format
	tools  []Tool
	key    [sha256.Size]byte
}

// toolsKey is the key of tools. It is made anew only if they are others than those of the
// last prompt: the tools of a server are the same strings each time.
func (s *Stage) toolsKey(model string, format provider.Format, tools []Tool) [sha256.Size]byte {
	same := func(a, b Tool) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	}
	if k := s.keyed.Load(); k != nil && k.model == model && k.format == format && slices.EqualFunc(k.tools, tools, same) {
		return k.key
	}
	k := &keyedTools{model, format, slices.Clone(tools), toolsKey(model, format, tools)}
	s.keyed.Store(k)
	return k.key
}

// toolsKey distinguishes toolsets, with what they are for.
func toolsKey(model string, format provider.Format, tools []Tool) (key [sha256.Size]byte) {
	h := sha256.New()
	var room []byte // used again
	text := func(s string) {
		room = append(binary.AppendUvarint(room[:0], uint64(len(s))), s...)
		h.Write(room)
	}
	text(model)
	h.Write([]byte{byte(format)})
	for i := range tools {
		text(tools[i].Name)
		text(tools[i].Description)
		text(string(tools[i].Schema))
	}
	h.Sum(key[:0])
	return key
}

// newToolset sorts the tools by name and writes them as canonical JSON, so that the same
// tools are the same bytes in every prompt. The caller's own stand
// first in given, in their order.
func newToolset(given []Tool, format provider.Format) (Toolset, error) {
	tools := slices.Clone(given)
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	set := Toolset{}
	list := make([]provider.Tool, 0, len(tools))
	for _, tool := range tools {
		name, _ := format.ToolName(tool.Name)
		schema, ok := schemaOf(tool.Schema)
		if !ok {
			at := slices.IndexFunc(given, func(t Tool) bool { return t.Name == tool.Name })
			return Toolset{}, BadTool(at, "parameters_schema_json", "is not a JSON object")
		}
		list = append(list, provider.Tool{Name: name, Description: tool.Description, Schema: schema})
		set.Costs = append(set.Costs, record.ToolCost{Name: tool.Name})
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
func (f *Framing) offered() []Tool {
	if f.WithoutTools {
		return nil
	}
	own := f.Tools
	if f.stage.Served == nil {
		return own
	}
	choice := settings.Tools{}
	if f.Settings.Tools != nil {
		choice = *f.Settings.Tools
	}
	if len(choice.Levels) == 0 {
		choice.Levels = levelsShown
	}
	taken := make(map[string]bool, len(own))
	for i := range own {
		name, _ := f.Format.ToolName(own[i].Name)
		taken[name] = true
	}
	out := slices.Clone(own)
	for _, s := range f.served {
		if name, _ := f.Format.ToolName(s.Name); !taken[name] && (named(s.Name, choice, f.skillTools) || !choice.None && s.AgentID == "" && !s.ByName && slices.Contains(choice.Levels, s.Level)) {
			taken[name] = true
			out = append(out, s.Tool)
		}
	}
	return out
}

// servedTo finds the tools that the agent can call.
func (s *Stage) servedTo(ctx context.Context, a *Ask) ([]Served, error) {
	if s.Served == nil || a.WithoutTools {
		return nil, nil
	}
	all, err := s.Served(ctx, a.Moment.Scope, a.Format)
	if err != nil {
		return nil, fmt.Errorf("assemble: tools of %s: %w", a.Moment.Scope, err)
	}
	return all, nil
}

// named reports whether the settings, or an active skill, choose a tool by its name.
func named(name string, choice settings.Tools, skillTools []string) bool {
	matches := func(pattern string) bool { return matchesName(pattern, name) }
	return !choice.None && slices.ContainsFunc(choice.Names, matches) || slices.ContainsFunc(skillTools, matches)
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

// offer finds the tools of the prompt in their form: as a parameter, or as texts.
func (f *Framing) offer() (err error) {
	f.Offered, f.text, f.others = f.offered(), nil, nil
	f.OfferedKey = f.stage.toolsKey(f.Model, f.Format, f.Offered)
	if f.Settings.Rendering == settings.AsText {
		f.text, f.others = asText(f.Offered, f.served, f.Tools)
		f.Set, err = f.stage.toolset(toolsKey(f.Model, f.Format, nil), f.Model, f.Format, nil)
		return err
	}
	f.Set, err = f.stage.toolset(f.OfferedKey, f.Model, f.Format, f.Offered)
	return err
}

// asText divides tools by who says what they do: the server and the caller, or others.
func asText(offered []Tool, served []Served, own []Tool) (text, others []tokens.ToolDefinition) {
	foreign := make(map[string]bool)
	for i := range served {
		foreign[served[i].Name] = served[i].Foreign
	}
	for i := range own { // which override served tools
		foreign[own[i].Name] = false
	}
	for i := range offered {
		tool := tokens.ToolDefinition{Name: offered[i].Name, Description: offered[i].Description, Schema: offered[i].Schema}
		if foreign[tool.Name] {
			others = append(others, tool)
		} else {
			text = append(text, tool)
		}
	}
	return text, others
}

// skillsTools are the tools of active skills.
func skillsTools(skills []settings.Skill, active []string) (names []string) {
	for i := range skills {
		if slices.Contains(active, skills[i].Name) {
			names = append(names, skills[i].Tools...)
		}
	}
	return names
}

// forkToolset are the tools of a fork's parent, as they stood in its prompt.
func (s *Stage) forkToolset(k *record.Fork, model string) (Toolset, error) {
	set := Toolset{}
	set.JSON = k.Tools
	for _, tool := range provider.ToolsOf(k.Tools) {
		schema := text.CanonicalJSON(tool.Schema)
		set.Counted = append(set.Counted, tokens.ToolDefinition{Name: tool.Name, Description: tool.Description, Schema: schema})
		set.Costs = append(set.Costs, record.ToolCost{Name: tool.Name})
	}
	if len(set.Counted) == 0 {
		set.JSON = []byte("[]")
	}
	return set, s.count(model, &set)
}

// BadTool is the error of a field of one of the caller's own tools.
func BadTool(i int, field, format string, args ...any) error {
	return invalid.Field(record.ErrInvalid, fmt.Sprintf("tools[%d].%s", i, field), format, args...)
}
