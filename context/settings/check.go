package settings

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// ErrInvalid: settings break a rule.
var ErrInvalid = errors.New("settings: invalid")

var (
	injectionName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	injectionTag  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
)

// Check returns an *invalid.Error that names the first field that breaks a rule, below
// the path that path is, or nil. No settings break none.
func (p *Prompt) Check(path string) error {
	if p == nil {
		return nil
	}
	c := settingsChecker{path: path}
	c.choices(p)
	c.tools(p.Tools)
	c.sources(&p.Sources)
	c.examples(p.FewShot)
	c.skills(p.Skills)
	c.limits(p)
	c.injections(p.Injections)
	if size := len(Encode(p)); c.err == nil && size > MaxBytes {
		return invalid.Field(ErrInvalid, path, "takes %d bytes, over the limit of %d", size, MaxBytes)
	}
	return c.err
}

type settingsChecker struct {
	path string
	err  error
}

func (c *settingsChecker) add(field, format string, args ...any) {
	if c.err == nil {
		c.err = invalid.Field(ErrInvalid, c.path+"."+field, format, args...)
	}
}

func (c *settingsChecker) text(field, value string, limit int) {
	switch {
	case len(value) > limit:
		c.add(field, "is %d bytes, over the limit of %d", len(value), limit)
	case !utf8.ValidString(value):
		c.add(field, "is not UTF-8")
	}
}

// plain is text without NUL: it is no text file, and can't be a key.
func (c *settingsChecker) plain(field, value string, limit int) {
	c.text(field, value, limit)
	if strings.IndexByte(value, 0) >= 0 {
		c.add(field, "holds a NUL character")
	}
}

func (c *settingsChecker) count(field string, n, limit int) {
	if n > limit {
		c.add(field, "has %d items, over the limit of %d", n, limit)
	}
}

func (c *settingsChecker) number(field string, n, limit int) {
	if n < 0 || n > limit {
		c.add(field, "is %d, it must be from 0 to %d", n, limit)
	}
}

func (c *settingsChecker) choices(p *Prompt) {
	if p.Layout != "" && !slices.Contains(Layouts(), p.Layout) {
		c.add("layout", "is not a layout; give three_phase, task_context, partitioned or react")
	}
	if p.Rendering != "" && p.Rendering != AsParameter && p.Rendering != AsText {
		c.add("tool_rendering", "is unknown; give parameter or text")
	}
	if p.Position != "" && p.Position != Append && p.Position != Prepend {
		c.add("runtime_position", "is unknown; give append or prepend")
	}
	c.text("system", p.System, MaxSystemBytes)
	c.plain("agents_md", p.AgentsMD, MaxAgentsBytes)
	c.plain("user_id", p.UserID, MaxUserIDBytes)
	if level := p.Variation.Level; level != nil && !(*level >= 0 && *level <= MaxVariation) {
		c.add("variation", "is %v, it must be from 0 to %v", *level, MaxVariation)
	}
}

func (c *settingsChecker) tools(t *Tools) {
	if t == nil {
		return
	}
	if t.None && len(t.Levels)+len(t.Names) > 0 {
		c.add("tools.none", "leaves out all tools that are served, so it goes with no levels and no names")
	}
	c.count("tools.levels", len(t.Levels), MaxLevels)
	for i, level := range t.Levels {
		if level < 1 || level > MaxLevels {
			c.add(fmt.Sprintf("tools.levels[%d]", i), "is %d, it must be from 1 to %d", level, MaxLevels)
		}
	}
	c.count("tools.names", len(t.Names), MaxToolPatterns)
	for i, name := range t.Names {
		c.named(fmt.Sprintf("tools.names[%d]", i), name, MaxToolPatternBytes)
	}
}

func (c *settingsChecker) named(field, name string, limit int) {
	c.plain(field, name, limit)
	c.required(field, name, limit)
}

// required is text that is not blank.
func (c *settingsChecker) required(field, value string, limit int) {
	c.text(field, value, limit)
	if strings.TrimSpace(value) == "" {
		c.add(field, "is required")
	}
}

func (c *settingsChecker) sources(s *Sources) {
	c.count("sources.exclude", len(s.Exclude), MaxExcluded)
	for i, name := range s.Exclude {
		if !Optional(name) {
			c.add(fmt.Sprintf("sources.exclude[%d]", i), "is %q, which is not a section that can be left out", name)
		}
	}
	c.count("sources.memory_layers", len(s.Layers), MaxLayers)
	for i, layer := range s.Layers {
		if layer != "L1" && layer != "L2" {
			c.add(fmt.Sprintf("sources.memory_layers[%d]", i), "must be L1 or L2: L3 and L4 are reached by tools only")
		}
	}
	if list := strings.Join(s.Layers, ","); list != "" && list != "L1" && list != "L1,L2" {
		c.add("sources.memory_layers", "must be L1, or L1 and L2, in this order")
	}
	c.number("sources.user_memories", s.UserMemories, MaxShown)
	c.number("sources.knowledge", s.Knowledge, MaxShown)
	c.count("sources.event_actions", len(s.EventActions), MaxEventActions)
	for i, action := range s.EventActions {
		c.named(fmt.Sprintf("sources.event_actions[%d]", i), action, MaxActionBytes)
	}
	c.count("sources.instructors", len(s.Instructors), MaxInstructors)
	for i, agent := range s.Instructors {
		c.named(fmt.Sprintf("sources.instructors[%d]", i), agent, kv.MaxOwnerBytes)
	}
}

func (c *settingsChecker) examples(list []Example) {
	c.count("few_shot", len(list), MaxExamples)
	for i := range list {
		field := fmt.Sprintf("few_shot[%d].", i)
		c.required(field+"input", list[i].Input, MaxExampleBytes)
		c.required(field+"output", list[i].Output, MaxExampleBytes)
		if len(list[i].Input)+len(list[i].Output) > MaxExampleBytes {
			c.add(strings.TrimSuffix(field, "."), "takes more than %d bytes", MaxExampleBytes)
		}
	}
}

func (c *settingsChecker) skills(list []Skill) {
	c.count("skills", len(list), MaxSkills)
	known := make(map[string]bool, len(list))
	for i := range list {
		field := fmt.Sprintf("skills[%d].", i)
		c.skill(field, &list[i])
		if known[list[i].Name] {
			c.add(field+"name", "is that of another skill")
		}
		known[list[i].Name] = true
	}
}

// CheckSkill returns an *invalid.Error for a skill that breaks a rule, or nil.
func CheckSkill(path string, s Skill) error {
	c := settingsChecker{path: path}
	c.skill("", &s)
	return c.err
}

func (c *settingsChecker) skill(field string, s *Skill) {
	c.named(field+"name", s.Name, MaxSkillNameBytes)
	if strings.ContainsAny(s.Name, "\r\n") {
		c.add(field+"name", "must be one line")
	}
	c.text(field+"description", s.Description, MaxDescriptionBytes)
	if strings.ContainsAny(s.Description, "\r\n") {
		c.add(field+"description", "must be one line")
	}
	c.text(field+"text", s.Text, MaxSkillBytes)
	c.count(field+"tools", len(s.Tools), MaxSkillTools)
	for i, name := range s.Tools {
		c.named(fmt.Sprintf("%stools[%d]", field, i), name, MaxToolNameBytes)
	}
}

func (c *settingsChecker) limits(p *Prompt) {
	c.number("limits.total", p.Limits.Total, MaxCapTokens)
	c.count("limits.sections", len(p.Limits.Sections), MaxCaps)
	for _, name := range slices.Sorted(maps.Keys(p.Limits.Sections)) {
		tokens := p.Limits.Sections[name]
		field := fmt.Sprintf("limits.sections[%q]", name)
		if !IsSection(name) && !slices.ContainsFunc(p.Injections, func(i Injection) bool { return i.Name == name }) {
			c.add(field, "is no section")
		}
		c.number(field, tokens, MaxCapTokens)
	}
	c.number("max_output_tokens", p.OutputTokens, MaxCapTokens)
	if t := p.Sources.KnowledgeTimeout; t < 0 || t > MaxKnowledgeTimeout {
		c.add("sources.knowledge_timeout", "is %v, it must be from 0 to %v", t, MaxKnowledgeTimeout)
	}
}

func (c *settingsChecker) injections(list []Injection) {
	c.count("injections", len(list), MaxInjections)
	known := make(map[string]bool, len(list))
	for i := range list {
		in, field := &list[i], fmt.Sprintf("injections[%d].", i)
		c.named(field+"name", in.Name, MaxInjectionName)
		switch {
		case !injectionName.MatchString(in.Name):
			c.add(field+"name", "holds more than letters, digits, `_`, `-` and `.`")
		case IsSection(in.Name):
			c.add(field+"name", "is that of a built-in section")
		case known[in.Name]:
			c.add(field+"name", "is that of another injection")
		}
		known[in.Name] = true
		c.injection(field, in)
	}
}

func (c *settingsChecker) injection(field string, in *Injection) {
	if in.Phase < 1 || in.Phase > 3 {
		c.add(field+"phase", "is required: system, user_context or runtime")
	}
	if in.Strategy < 0 || in.Strategy > 3 {
		c.add(field+"cache", "is unknown")
	}
	if in.Priority != nil {
		c.number(field+"priority", *in.Priority, MaxPriority)
	}
	c.number(field+"max_tokens", in.MaxTokens, MaxInjectionTokens)
	c.text(field+"xml_tag", in.Tag, MaxTagBytes)
	if in.Tag != "" && !injectionTag.MatchString(in.Tag) {
		c.add(field+"xml_tag", "must be a letter, then letters, digits, `_` and `-`")
	}
	c.text(field+"content", in.Content, MaxInjectionBytes)
}
