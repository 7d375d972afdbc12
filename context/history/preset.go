package history

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// Style is how a preset lays out a history of steps.
type Style uint8

// The styles.
const (
	// StyleDesign has "Previous steps:" and "Recent steps:".
	StyleDesign Style = iota + 1
	// StyleReduction has "Earlier steps:" and the steps in full. The default.
	StyleReduction
	// StyleGrouped puts older steps of one sort together in a line and keeps
	// every failure.
	StyleGrouped
	// StyleZones shows messages in three zones, by age: in full, shortened, and
	// summarized; see package decay.
	StyleZones
	// StyleNewest shows the newest messages that fit, and nothing of the others.
	StyleNewest
	// StyleLevels shows messages as levels of pressure leave them; see package window.
	StyleLevels
)

// Messages reports whether the style shows messages by their age, not steps as lines.
func (s Style) Messages() bool { return s == StyleZones || s == StyleNewest || s == StyleLevels }

// Results is what a prompt shows of the results of calls that it has in full.
type Results uint8

// The choices.
const (
	// ResultsObservation shows the observation of results that a preset hides, and the
	// others whole. The default.
	ResultsObservation Results = iota + 1
	// ResultsOmit shows none: calls become text.
	ResultsOmit
	// ResultsCompressed shows the short forms of package compress.
	ResultsCompressed
	// ResultsFull shows them whole.
	ResultsFull
)

// Defaults of a Preset.
const (
	// DefaultKeepRecent steps stay in full.
	DefaultKeepRecent = 3
	// triggerSteps: more steps than these are compacted.
	triggerSteps = 5
	// triggerTokens: steps that take more in full are compacted.
	triggerTokens = 2000
	// DefaultSectionTokens bounds the section of older steps.
	DefaultSectionTokens = 500
	// ProtectLast of the failures before a preset's boundary keep their lines,
	// whatever is left out.
	ProtectLast = 10
	// DefaultGroupLines bounds the lines of grouped steps.
	DefaultGroupLines = 10
	// manySteps: from more steps than this on a grouped history has room for
	// manyGroupLines.
	manySteps      = 100
	manyGroupLines = 27
)

// Preset is everything that a server and a session take from a preset: how steps are
// recorded, what of a history a prompt shows in full, what it has one line for, and how
// long a prompt is. It goes by fixed rules, without prices. A zero field means its
// default.
type Preset struct {
	// Name is what settings call it. Default none.
	Name string
	// Style is the layout. Default StyleReduction.
	Style Style
	// Templates make the lines. Default step.DesignTemplates.
	Templates step.Templates
	// Reference is how a full step says where its result lies. Default
	// step.ReferenceHint.
	Reference step.ReferenceStyle
	// Observation is how much the observation of a step says. Default
	// step.ObservationFull.
	Observation step.ObservationStyle
	// Offload names the thresholds of offloading (step.Rules.WithOffload). Default
	// step.OffloadReduction.
	Offload string
	// Forgets ends the short-term memory of a session with the server: what it offloaded,
	// L2 and L3. Default false.
	Forgets bool
	// KeepOnWrite lets what prompts show of memory stay for its time although it was
	// changed. Default false.
	KeepOnWrite bool
	// NumberKinds counts the offloaded results of each kind apart in their names.
	// Default false.
	NumberKinds bool
	// KeepRecent steps stay in full. Default DefaultKeepRecent.
	KeepRecent int
	// SectionTokens bounds the older section of StyleReduction. Default
	// DefaultSectionTokens.
	SectionTokens int
	// GroupLines bounds the lines of StyleGrouped. Default DefaultGroupLines,
	// and 27 from more than 100 steps on.
	GroupLines int
	// NoGroups gives each older step of StyleGrouped its own line. Default false.
	NoGroups bool
	// ShowReads shows what fs:read_file read all the same, as long as its step is in
	// full. Default false.
	ShowReads bool
	// Results is what stands for the results of calls in full. Default
	// ResultsObservation.
	Results Results
	// Budget divides the window for prompts without a given limit. Default none.
	Budget Budget
	// Layout and Rendering are the order of the sections of prompts and how they offer
	// tools, as package settings calls them. Default: as without a preset.
	Layout, Rendering string
}

// presets are the presets that have a name.
var presets = sync.OnceValue(func() []Preset {
	grouped := func(name string, recent, lines int) Preset {
		return Preset{Name: name, Style: StyleGrouped, KeepRecent: recent, GroupLines: lines, ShowReads: true}
	}
	debug := grouped("debug", 7, 10)
	debug.NoGroups = true
	return []Preset{
		// Short observations with long references. Results that were offloaded are hidden
		// from the start.
		{
			Name: "design", Style: StyleDesign, Templates: step.DesignTemplates(), Reference: step.ReferenceLong,
			Observation: step.ObservationDesign, Offload: step.OffloadDesign, Forgets: true, NumberKinds: true, Budget: React8k(),
			Layout: "react", Rendering: "text",
		},
		// Long observations with short references. Results that were offloaded are hidden
		// from the start, but for files that were read.
		{
			Name: "reduction", Style: StyleReduction, Templates: step.ReductionTemplates(), Reference: step.ReferenceShort,
			Observation: step.ObservationFull, Offload: step.OffloadReduction, NumberKinds: true,
			ShowReads: true, Budget: React8k(), Layout: "react", Rendering: "text",
		},
		// What others say of a task, without the results of their calls.
		{
			Name: "task_context", Style: StyleNewest, Templates: step.DesignTemplates(), Reference: step.ReferenceHint,
			Observation: step.ObservationFull, Offload: step.OffloadReduction, ShowReads: true, Results: ResultsOmit,
			Budget: Budget{Recent: 4000}, Layout: "task_context", Rendering: "parameter",
		},
		// A long window, whose messages fade by age. A quarter is left to the response.
		{
			Name: "three_phase", Style: StyleZones, Templates: step.DesignTemplates(), Reference: step.ReferenceHint,
			Observation: step.ObservationFull, Offload: step.OffloadCompressor, ShowReads: true, Results: ResultsCompressed,
			KeepOnWrite: true, Budget: Budget{Recent: 150_000, Response: 50_000}, Layout: "three_phase", Rendering: "text",
		},
		// A long window in five parts, whose history shrinks by levels of pressure.
		{
			Name: "partitioned", Style: StyleLevels, Templates: step.DesignTemplates(), Reference: step.ReferenceHint,
			Observation: step.ObservationFull, Offload: step.OffloadReduction, ShowReads: true, Results: ResultsFull,
			Budget: Budget{Recent: 200_000}, Layout: "partitioned", Rendering: "parameter",
		},
		// Grouped histories for a sort of work.
		grouped("chat", 5, 20),
		grouped("research", 3, 10),
		grouped("code", 5, 15),
		debug,
	}
})

// Named returns the preset that has a name; false where none has.
func Named(name string) (Preset, bool) {
	for _, p := range presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// Names are the names of all presets as a text for people: "a, b or c".
func Names() string {
	names := make([]string, len(presets()))
	for i, p := range presets() {
		names[i] = p.Name
	}
	last := len(names) - 1
	return strings.Join(slices.Clone(names[:last]), ", ") + " or " + names[last]
}

// WithDefaults fills in the defaults, but for that of GroupLines, which depends on
// the number of steps.
func (p Preset) WithDefaults() Preset {
	if p.Templates.Empty() {
		p.Templates = step.DesignTemplates()
	}
	p.Style, p.Results = cmp.Or(p.Style, StyleReduction), cmp.Or(p.Results, ResultsObservation)
	p.KeepRecent, p.SectionTokens = cmp.Or(p.KeepRecent, DefaultKeepRecent), cmp.Or(p.SectionTokens, DefaultSectionTokens)
	return p
}

// Budget is how a window of tokens is shared out between the parts of a prompt
// and the response. Its sum is the window. The zero Budget shares nothing out.
type Budget struct {
	// Fixed is for the system prompt and the tools, FewShot for examples, Goal for
	// the goal: they are as long as they are.
	Fixed, FewShot, Goal int
	// Older is for the lines of older steps, Recent for the steps in full. What
	// other parts leave may serve recent steps.
	Older, Recent int
	// Response is for what the model answers: no part of the prompt.
	Response int
}

// React8k is the budget of a window of 8192 tokens.
func React8k() Budget {
	return Budget{Fixed: 1500, FewShot: 500, Older: DefaultSectionTokens, Recent: 2000, Goal: 200, Response: 3492}
}

// Window is the sum of all shares.
func (b Budget) Window() int {
	return b.Prompt() + b.Response
}

// Prompt is the sum of what stands in a prompt, 0 of the zero Budget.
func (b Budget) Prompt() int {
	return b.Fixed + b.FewShot + b.Older + b.Recent + b.Goal
}
