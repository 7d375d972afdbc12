package settings

import (
	"maps"
	"slices"
)

// The names of the built-in sections of a prompt.
const (
	System     = "system"
	ToolList   = "tools"
	SkillTexts = "skills"
	FewShots   = "few_shot"
	Notes      = "notes"
	UserMemory = "user_memory"
	Knowledge  = "knowledge"
	Playbook   = "playbook"
	History    = "history"
	Tasks      = "tasks"
	Events     = "events"
	Messages   = "messages"
	Rehydrated = "rehydrated"
	Working    = "working"
	Plan       = "plan"
	Progress   = "progress"
	Errors     = "errors"
	Timestamps = "timestamps"
	Goal       = "goal"
)

// builtin are the sections, whether callers may leave them out, and the default cap of
// each in tokens; 0 is none.
var builtin = map[string]struct {
	optional bool
	tokens   int
}{
	System:     {tokens: 2000},
	ToolList:   {tokens: 3000},
	SkillTexts: {true, 1000},
	FewShots:   {true, 500},
	Notes:      {true, 1000},
	UserMemory: {true, 500},
	Knowledge:  {true, 800},
	Playbook:   {true, 300},
	History:    {},
	Tasks:      {true, 1500},
	Events:     {true, 0},
	Messages:   {true, 0},
	Rehydrated: {true, 400},
	Working:    {tokens: 4000},
	Plan:       {true, 300},
	Progress:   {true, 0},
	Errors:     {true, 300},
	Timestamps: {},
	Goal:       {true, 200},
}

// Unless it is capped, memory takes the memoryShare-th part of a prompt, at least its cap above
// and at most maxMemoryTokens.
const (
	memoryShare     = 10
	maxMemoryTokens = 4000
)

// IsSection reports whether a name is that of a built-in section.
func IsSection(name string) bool {
	_, ok := builtin[name]
	return ok
}

// Sections are the built-in sections, by name.
func Sections() []string { return slices.Sorted(maps.Keys(builtin)) }

// Optional reports whether prompts may leave out a built-in section.
func Optional(section string) bool { return builtin[section].optional }

// Cap is how many tokens a section may take: of its name in Limits, or by default; 0 is
// no cap.
func (p Prompt) Cap(section string) int {
	if own, ok := p.Limits.Sections[section]; ok {
		return own
	}
	if shared := p.Limits.Shared; shared > 0 && (section == System || section == ToolList) {
		return shared
	}
	if section == UserMemory {
		return min(max(p.Limits.Prompt/memoryShare, builtin[section].tokens), maxMemoryTokens)
	}
	return builtin[section].tokens
}
