package settings

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Layout is the order of the sections of a prompt.
type Layout string

// The layouts.
const (
	// ThreePhase has stable sections first, then knowledge about the user and the subject,
	// the history, and at the end the parts that change with every prompt.
	ThreePhase Layout = "three_phase"
	// TaskContext has recent tasks, then knowledge, and the current task last.
	TaskContext Layout = "task_context"
	// Partitioned has system, memory, skills, history, working state and task.
	Partitioned Layout = "partitioned"
	// ReAct has system, tools and examples in one message, and history and goal in
	// another.
	ReAct Layout = "react"
)

// Layouts are all of them.
func Layouts() []Layout { return []Layout{ThreePhase, TaskContext, Partitioned, ReAct} }

// Rendering is how tools are offered.
type Rendering string

// The renderings.
const (
	// AsParameter offers tools as the parameter that providers have for them.
	AsParameter Rendering = "parameter"
	// AsText writes them into the system message instead.
	AsText Rendering = "text"
)

// Position is the place of the runtime sections relative to the newest user message.
type Position string

// The positions.
const (
	Append  Position = "append"
	Prepend Position = "prepend"
)

// Prompt says what prompts are made of. It is never changed once it is in use.
type Prompt struct {
	Layout    Layout    `json:"layout,omitempty"`
	System    string    `json:"system,omitempty"`
	Rendering Rendering `json:"rendering,omitempty"`
	// Tools says which served tools stand in prompts; nil is as below.
	Tools    *Tools   `json:"tools,omitempty"`
	Position Position `json:"position,omitempty"`
	Sources  Sources  `json:"sources,omitzero"`
	// FewShot and Skills take the place of those below if there are any.
	FewShot []Example `json:"few_shot,omitempty"`
	Skills  []Skill   `json:"skills,omitempty"`
	// AgentsMD stands in the place of the AGENTS.md of the workspace.
	AgentsMD  string    `json:"agents_md,omitempty"`
	UserID    string    `json:"user_id,omitempty"`
	Limits    Limits    `json:"limits,omitzero"`
	Variation Variation `json:"variation,omitzero"`
	// Injections are sections of the caller. A call's injections are added to the
	// session's; equal names replace.
	Injections []Injection `json:"injections,omitempty"`
	// OutputTokens are left of the budget to the answer.
	OutputTokens int `json:"output_tokens,omitempty"`
}

// Tools says which served tools stand in prompts.
type Tools struct {
	// None leaves out all of them.
	None bool `json:"none,omitempty"`
	// Levels are the levels of the server's own tools. Default: 1.
	Levels []int `json:"levels,omitempty"`
	// Names are names of tools, or patterns with `*`, of the server and of agents.
	Names []string `json:"names,omitempty"`
}

// Sources says what a prompt takes from elsewhere.
type Sources struct {
	// Exclude names sections that prompts leave out.
	Exclude []string `json:"exclude,omitempty"`
	// Layers are the tiers whose tasks are shown: L1, or L1 and L2.
	Layers []string `json:"layers,omitempty"`
	// UserMemories and Knowledge are how many of them at most; 0 is as many memories as fit.
	UserMemories int `json:"user_memories,omitempty"`
	Knowledge    int `json:"knowledge,omitempty"`
	// KnowledgeTimeout is how long a prompt waits for knowledge.
	KnowledgeTimeout time.Duration `json:"knowledge_timeout,omitempty"`
	// EventActions are the actions of events that may be shown.
	EventActions []string `json:"event_actions,omitempty"`
	// Instructors are the agents whose direct messages have the role that they ask for, and
	// whose plans and reported tasks count as instructions.
	Instructors []string `json:"instructors,omitempty"`
}

// Example shows a question and its answer.
type Example struct {
	Input  string `json:"input"`
	Output string `json:"output"`
}

// Skill is a set of instructions that can be activated for an agent.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Text is shown to the model while the skill is active.
	Text string `json:"text,omitempty"`
	// Tools are names of tools that stand in prompts while it is active.
	Tools []string `json:"tools,omitempty"`
	// Active says that it is active from the start.
	Active bool `json:"active,omitempty"`
}

// Limits are caps, in tokens.
type Limits struct {
	// Total bounds all that is no message of the history.
	Total int `json:"total,omitempty"`
	// Sections are caps by name.
	Sections map[string]int `json:"sections,omitempty"`
	// Shared is how many tokens system prompt and tools may take together; 0: each has its
	// own cap. It is the preset's.
	Shared int `json:"-"`
	// Prompt is how many tokens the prompt may take; 0: unknown. It is the prompt's.
	Prompt int `json:"-"`
}

// Variation says how the form of runtime sections varies. Nil is as below.
type Variation struct {
	Disabled *bool    `json:"disabled,omitempty"`
	Level    *float64 `json:"level,omitempty"`
}

// Injection is a section of the caller's.
type Injection struct {
	Name string `json:"name"`
	// Phase is 1, 2 or 3: system, user context, runtime.
	Phase int `json:"phase"`
	// Strategy is 1, 2 or 3: stable, session, dynamic; 0 is dynamic.
	Strategy int `json:"strategy,omitempty"`
	// Priority is from 0 to MaxPriority; nil is 50.
	Priority  *int   `json:"priority,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
	Tag       string `json:"tag,omitempty"`
	Content   string `json:"content,omitempty"`
}

// Over returns base with what p sets.
func (p Prompt) Over(base Prompt) Prompt {
	return Prompt{
		Layout:    cmp.Or(p.Layout, base.Layout),
		System:    cmp.Or(p.System, base.System),
		Rendering: cmp.Or(p.Rendering, base.Rendering),
		Tools:     cmp.Or(p.Tools, base.Tools),
		Position:  cmp.Or(p.Position, base.Position),

		Sources:  p.Sources.over(base.Sources),
		FewShot:  listOr(p.FewShot, base.FewShot),
		Skills:   listOr(p.Skills, base.Skills),
		AgentsMD: cmp.Or(p.AgentsMD, base.AgentsMD),
		UserID:   cmp.Or(p.UserID, base.UserID),
		Limits:   p.Limits.over(base.Limits),
		Variation: Variation{
			Disabled: cmp.Or(p.Variation.Disabled, base.Variation.Disabled),
			Level:    cmp.Or(p.Variation.Level, base.Variation.Level),
		},
		Injections:   overInjections(p.Injections, base.Injections),
		OutputTokens: cmp.Or(p.OutputTokens, base.OutputTokens),
	}
}

func (s Sources) over(base Sources) Sources {
	return Sources{
		Exclude:          listOr(s.Exclude, base.Exclude),
		Layers:           listOr(s.Layers, base.Layers),
		UserMemories:     cmp.Or(s.UserMemories, base.UserMemories),
		Knowledge:        cmp.Or(s.Knowledge, base.Knowledge),
		KnowledgeTimeout: cmp.Or(s.KnowledgeTimeout, base.KnowledgeTimeout),
		EventActions:     listOr(s.EventActions, base.EventActions),
		Instructors:      listOr(s.Instructors, base.Instructors),
	}
}

func (l Limits) over(base Limits) Limits {
	out := Limits{Total: cmp.Or(l.Total, base.Total), Sections: base.Sections}
	if len(l.Sections) > 0 {
		out.Sections = maps.Clone(base.Sections)
		if out.Sections == nil {
			out.Sections = make(map[string]int, len(l.Sections))
		}
		maps.Copy(out.Sections, l.Sections)
	}
	return out
}

func listOr[T any](list, base []T) []T {
	if len(list) > 0 {
		return list
	}
	return base
}

// overInjections are the injections of base, each in the place of one of its name, then
// the others.
func overInjections(list, base []Injection) []Injection {
	if len(list) == 0 {
		return base
	}
	out := make([]Injection, 0, len(base)+len(list))
	own := make(map[string]int, len(list))
	for i := range list {
		own[list[i].Name] = i
	}
	for i := range base {
		if at, ok := own[base[i].Name]; ok {
			out = append(out, list[at])
			delete(own, base[i].Name)
			continue
		}
		out = append(out, base[i])
	}
	for i := range list {
		if _, left := own[list[i].Name]; left {
			out = append(out, list[i])
		}
	}
	return out
}

// Excludes reports whether prompts leave out a section.
func (p Prompt) Excludes(section string) bool {
	return slices.Contains(p.Sources.Exclude, section)
}
