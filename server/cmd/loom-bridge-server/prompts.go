package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/vary"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Prompts says what the prompts of sessions are made of that say nothing. A setting that
// is zero or empty is the preset's own, or the default.
type Prompts struct {
	Layout, SystemFile, Rendering, Position, WorkingPosition string

	// ToolLevels are the levels whose tools stand in prompts, LevelOf that of some tools
	// by name.
	ToolLevels []int
	ToolNames  []string
	LevelOf    map[string]int

	ExcludeSections, MemoryLayers, EventActions           []string
	UserMemories, Knowledge, Events, MinEvents, MaxErrors int
	DirectMessages, DirectMin                             int
	DirectShare                                           float64
	KnowledgeTimeout                                      time.Duration

	SectionProfile string
	SectionTokens  map[string]int
	TotalTokens    int
	OutputTokens   int

	Variation, VariationAdaptive bool
	VariationLevel               float64

	StableTTL, SessionTTL time.Duration
	KeepOnWrite           bool

	// AssembleCache keeps prompts for calls that would make the same ones again.
	AssembleCache bool
}

const (
	keySystemFile  = "prompt-system-file"
	keyToolLevel   = "tool-level"
	keyToolLevels  = "tool-levels"
	keyExclude     = "exclude-sections"
	keyLayers      = "memory-layers"
	keyToolNames   = "tool-names"
	keyEventAction = "event-actions"
)

func (c *Config) promptSettings() []setting {
	p := &c.Prompts
	tokens := func(to *int) field { return number(to, "tokens", 0, settings.MaxCapTokens) }
	shown := func(to *int, unit string, most int) field { return number(to, unit, 0, most) }
	return []setting{
		{"prompt-layout", optional(choice(&p.Layout, namesOf(settings.Layouts())...)), nil, "order of the sections; none: the preset's, or three_phase"},
		{keySystemFile, anyText(&p.SystemFile, "file"), nil, "text file of the system prompt for calls that give none"},
		{"tool-rendering", optional(choice(&p.Rendering, string(settings.AsParameter), string(settings.AsText))), nil, "how tools are offered; none: the preset's own, or parameter"},
		{keyToolLevels, numbers(&p.ToolLevels, "level,..."), nil, "levels of the server's tools that stand in prompts, of 1, 2 and 3; none: 1"},
		{keyToolNames, list(&p.ToolNames, "name,..."), nil, "tools besides, such as fs:* and those of agents"},
		{keyToolLevel, named(&p.LevelOf, "name=level", checkLevelOf), nil, "level of a tool of the server, such as fs:delete=2"},
		{"runtime-position", optional(choice(&p.Position, string(settings.Append), string(settings.Prepend))), nil, "where runtime sections stand beside the newest user message; none: append"},
		{"working-position", optional(choice(&p.WorkingPosition, string(settings.AtEnd), string(settings.AfterSystem))), nil, "where the working state stands: at the end, or behind the system message; none: end"},
		{keyExclude, list(&p.ExcludeSections, "section,..."), nil, "sections to leave out, see below"},
		{keyLayers, list(&p.MemoryLayers, "L1|L1,L2"), nil, "tiers of memory whose tasks stand in prompts; none: L1"},
		{"user-memories", shown(&p.UserMemories, "memories", settings.MaxShown), 0, "most of what is known of the user; 0: 3"},
		{"knowledge-items", shown(&p.Knowledge, "pieces", settings.MaxShown), 0, "most of knowledge; 0: 3"},
		{"knowledge-timeout", span(&p.KnowledgeTimeout, 0, settings.MaxKnowledgeTimeout), 0 * time.Second, "longest wait for knowledge; 0: 100ms"},
		{keyEventAction, list(&p.EventActions, "action,..."), nil, "events that may stand in prompts; none: node.thinking,node.tool_call"},
		{"events-shown", shown(&p.Events, "events", settings.MaxEvents), 0, "most of them; 0: 20"},
		{"min-events", shown(&p.MinEvents, "events", settings.MaxEvents), 0, "fewest of them for any to stand there; 0: 2"},
		{"errors-shown", shown(&p.MaxErrors, "calls", settings.MaxErrors), 0, "most of the last 10 failed calls; 0: 5"},
		{"direct-messages", shown(&p.DirectMessages, "messages", settings.MaxDirect), 0, "most direct messages; 0: 50"},
		{"direct-share", upTo(&p.DirectShare, "share", 1), 0.0, "part of the cap of tasks that they have; 0: 0.3"},
		{"direct-min", shown(&p.DirectMin, "messages", settings.MaxDirectMin), 0, "how many stand there in any case; 0: 1"},
		{"section-profile", optional(choice(&p.SectionProfile, string(settings.ThreePhaseCaps), string(settings.React8k))), nil, "table of the caps of sections; none: the preset's own, or three_phase"},
		{"section-tokens", named(&p.SectionTokens, "section=tokens", checkCap), nil, "caps of sections, see below; 0: none"},
		{"injection-total-tokens", tokens(&p.TotalTokens), 0, "cap of all that is no message of the history; 0: 12000"},
		{"output-reserve", tokens(&p.OutputTokens), 0, "of a prompt's budget, left to the answer; 0: the preset's own, or none"},
		{"variation", yes(&p.Variation), true, "vary the form of runtime sections"},
		{"variation-level", upTo(&p.VariationLevel, "level", settings.MaxVariation), vary.DefaultLevel, "how often something varies"},
		{"variation-adaptive", yes(&p.VariationAdaptive), nil, "vary more in long prompts and after repeated calls"},
		{"stable-ttl", span(&p.StableTTL, 0, settings.MaxTTL), 0 * time.Second, "how long stable sections stay as they are; 0: 1h"},
		{"session-ttl", span(&p.SessionTTL, 0, settings.MaxTTL), 0 * time.Second, "how long sections of the session do; 0: 5m"},
		{"assemble-cache", yes(&p.AssembleCache), nil, "give a prompt again where nothing that it is made of has changed"},
		{"keep-on-write", yes(&p.KeepOnWrite), nil, "let them stay for that time although a record that they show was changed"},
	}
}

func namesOf[T ~string](values []T) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return names
}

// sectionsNote lists the sections below their settings, a few on each line.
func sectionsNote() string {
	const perLine = 6
	none, capped, optional := settings.Prompt{}, []string{}, []string{}
	for _, name := range settings.Sections() {
		if tokens := none.Cap(name); tokens > 0 {
			capped = append(capped, fmt.Sprintf("%s=%d", name, tokens))
		}
		if settings.Optional(name) {
			optional = append(optional, name)
		}
	}
	var b strings.Builder
	for _, l := range []struct {
		head  string
		items []string
	}{{"Caps of sections by default", capped}, {"Sections that can be left out", optional}} {
		fmt.Fprintf(&b, "\n  %s:\n", l.head)
		for part := range slices.Chunk(l.items, perLine) {
			b.WriteString("    " + strings.Join(part, ", ") + "\n")
		}
	}
	return b.String()
}

// upTo is a number from 0 to the highest.
func upTo(to *float64, unit string, highest float64) scalar[float64] {
	s := decimal(to, unit, highest)
	s.parse = func(text string) (float64, error) {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !(value >= 0 && value <= highest) {
			return 0, fmt.Errorf("is not a number from 0 to %v", highest)
		}
		return value, nil
	}
	return s
}

func checkCap(section string, tokens int) error {
	if !settings.IsSection(section) {
		return fmt.Errorf("%q is none of %s", section, strings.Join(settings.Sections(), ", "))
	}
	return between(tokens, 0, settings.MaxCapTokens)
}

func checkLevelOf(name string, level int) error {
	if name == "" || len(name) > tools.MaxNameBytes {
		return fmt.Errorf("%q is no name of a tool", name)
	}
	return between(level, tools.LevelFunction, tools.LevelScript)
}

// checkPrompts checks what several of the settings make together, but for what is in
// files.
func (c Config) checkPrompts() error {
	p := c.prompt()
	bad, ok := errors.AsType[*invalid.Error](p.Check("prompt"))
	if !ok {
		return nil
	}
	for _, s := range []struct {
		field, key string
		value      []string
	}{
		{"tools.levels", keyToolLevels, []string{printNumbers(c.ToolLevels)}},
		{"tools.names", keyToolNames, c.ToolNames},
		{"sources.exclude", keyExclude, c.ExcludeSections},
		{"sources.memory_layers", keyLayers, c.MemoryLayers},
		{"sources.event_actions", keyEventAction, c.EventActions},
	} {
		if item, ok := strings.CutPrefix(bad.Field, "prompt."+s.field); ok {
			return &ConfigError{s.key, strings.Join(s.value, ","), strings.TrimSpace(item + " " + bad.Problem)}
		}
	}
	return &ConfigError{bad.Field, "", bad.Problem} // of one value, which was checked when it was read
}

// sessions is what holds for sessions that say nothing, as configured, with what stands
// in files.
func (c Config) sessions() (session.Config, error) {
	own := c.history()
	p := c.prompt()
	if c.SystemFile != "" {
		text, err := os.ReadFile(c.SystemFile)
		if err != nil {
			return own, &ConfigError{keySystemFile, c.SystemFile, err.Error()}
		}
		p.System = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
		if bad, ok := errors.AsType[*invalid.Error](p.Check("prompt")); ok {
			return own, &ConfigError{keySystemFile, c.SystemFile, bad.Problem}
		}
	}
	if len(settings.Encode(&p)) > len("{}") {
		own.Prompt = &p
	}
	return own, nil
}

// prompt says what prompts are made of, but for what stands in files.
func (p *Prompts) prompt() settings.Prompt {
	out := settings.Prompt{
		Layout: settings.Layout(p.Layout), Rendering: settings.Rendering(p.Rendering), Position: settings.Position(p.Position), WorkingPosition: settings.WorkingPosition(p.WorkingPosition),
		Sources: settings.Sources{
			Exclude: p.ExcludeSections, Layers: p.MemoryLayers, UserMemories: p.UserMemories, Knowledge: p.Knowledge,
			KnowledgeTimeout: p.KnowledgeTimeout, EventActions: p.EventActions, Events: p.Events, MinEvents: p.MinEvents, Errors: p.MaxErrors,
			DirectMessages: p.DirectMessages, DirectShare: p.DirectShare, DirectMin: p.DirectMin,
		},
		Limits:       settings.Limits{Total: p.TotalTokens, Profile: settings.Profile(p.SectionProfile), Sections: p.SectionTokens},
		Cache:        settings.Cache{StableTTL: p.StableTTL, SessionTTL: p.SessionTTL},
		OutputTokens: p.OutputTokens,
	}
	if len(p.ToolLevels) > 0 || len(p.ToolNames) > 0 {
		out.Tools = &settings.Tools{Levels: p.ToolLevels, Names: p.ToolNames}
	}
	if !p.Variation {
		out.Variation.Disabled = new(true)
	}
	if p.VariationLevel != vary.DefaultLevel {
		out.Variation.Level = &p.VariationLevel
	}
	if p.VariationAdaptive {
		out.Variation.Adaptive = new(true)
	}
	if p.KeepOnWrite {
		out.Cache.KeepOnWrite = new(true)
	}
	return out
}

// levelError is an error of opening the domain, as one of the setting where it is.
func (c Config) levelError(err error) error {
	if unknown, ok := errors.AsType[*tools.NotFoundError](err); ok && len(c.LevelOf) > 0 {
		problem := fmt.Sprintf("%q is no tool of the server", unknown.Name)
		if unknown.Nearest != "" {
			problem += ", nearest is " + unknown.Nearest
		}
		return &ConfigError{keyToolLevel, printNamed(c.LevelOf), problem}
	}
	return err
}
