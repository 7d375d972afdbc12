package history

import "github.com/loom-bridge/loom-bridge/context/step"

// Style is how a preset lays out a history of steps.
type Style uint8

// The styles.
const (
	// StyleReduction has "Earlier steps:" and the steps in full.
	StyleReduction Style = iota
	// StyleDesign has "Previous steps:" and "Recent steps:".
	StyleDesign
	// StyleGrouped puts older steps of one sort together in a line and keeps
	// every failure.
	StyleGrouped
)

// Fallback is what becomes of an older section that is over its tokens.
type Fallback uint8

// The fallbacks.
const (
	// FallbackCount says only how many steps there were.
	FallbackCount Fallback = iota
	// FallbackTrim leaves out the oldest lines and says how many.
	FallbackTrim
)

// Defaults of a Preset.
const (
	// DefaultKeepRecent steps stay in full.
	DefaultKeepRecent = 3
	// DefaultTriggerSteps: more steps than these are compacted.
	DefaultTriggerSteps = 5
	// DefaultTriggerTokens: steps that take more in full are compacted.
	DefaultTriggerTokens = 2000
	// DefaultSectionTokens bounds the section of older steps.
	DefaultSectionTokens = 500
	// DefaultProtectLast of the failures before a preset's boundary keep their lines,
	// whatever is left out.
	DefaultProtectLast = 10
	// DefaultGroupLines bounds the lines of grouped steps.
	DefaultGroupLines = 10
	// manySteps: from more steps than this on a grouped history has room for
	// manyGroupLines.
	manySteps      = 100
	manyGroupLines = 27
)

// Preset is a compaction of a history of steps by fixed rules, without prices:
// the last steps in full, one line for each older one. Zero fields mean the
// defaults.
type Preset struct {
	// Style is the layout. Default StyleReduction.
	Style Style
	// Templates make the lines. Default step.DesignTemplates.
	Templates step.Templates
	// Reference is how a full step says where its result lies. Default
	// step.ReferenceHint.
	Reference step.ReferenceStyle
	// KeepRecent steps stay in full. Default DefaultKeepRecent.
	KeepRecent int
	// TriggerSteps and TriggerTokens: compaction begins when there are more
	// steps, or when all steps in full take more tokens. Default
	// DefaultTriggerSteps and DefaultTriggerTokens.
	TriggerSteps, TriggerTokens int
	// SectionTokens bounds the older section of StyleReduction. Default
	// DefaultSectionTokens.
	SectionTokens int
	// Fallback is what is done when it is over. Default FallbackCount.
	Fallback Fallback
	// GroupLines bounds the lines of StyleGrouped. Default DefaultGroupLines,
	// and 27 from more than 100 steps on.
	GroupLines int
	// NoGroups gives each older step of StyleGrouped a line of its own. Default
	// false.
	NoGroups bool
	// HideOffloaded leaves out the result itself from full steps where it can be
	// read by its reference. Default false.
	HideOffloaded bool
	// ShowReads shows what fs:read_file read all the same, as long as its step is in
	// full. Default false.
	ShowReads bool
	// ProtectLast of the failures that are shown as lines are never left out.
	// Default DefaultProtectLast.
	ProtectLast int
	// Budget shares out the window of prompts for which nobody says how long they
	// may be. Default none.
	Budget Budget
}

// Design is the preset of the short observations with long references. Results
// that were offloaded are hidden from the start.
func Design() Preset {
	return Preset{
		Style: StyleDesign, Templates: step.DesignTemplates(), Reference: step.ReferenceLong, HideOffloaded: true, Budget: React8k(),
	}
}

// Reduction is the preset of the long observations with short references. Results
// that were offloaded are hidden from the start, but for files that were read.
func Reduction() Preset {
	return Preset{
		Style: StyleReduction, Templates: step.ReductionTemplates(), Reference: step.ReferenceShort,
		HideOffloaded: true, ShowReads: true, Budget: React8k(),
	}
}

// Named returns a preset by its name: "design", "reduction", or one that Profile
// knows; false for any other name.
func Named(name string) (Preset, bool) {
	switch name {
	case "design":
		return Design(), true
	case "reduction":
		return Reduction(), true
	}
	return Profile(name)
}

// Profile returns the preset of grouped histories for a sort of work: "chat",
// "research", "code" or "debug"; false for any other name.
func Profile(name string) (Preset, bool) {
	p := Preset{Style: StyleGrouped, HideOffloaded: true, ShowReads: true}
	switch name {
	case "chat":
		p.KeepRecent, p.GroupLines = 5, 20
	case "research":
		p.KeepRecent, p.GroupLines = 3, 10
	case "code":
		p.KeepRecent, p.GroupLines = 5, 15
	case "debug":
		p.KeepRecent, p.GroupLines, p.NoGroups = 7, 10, true
	default:
		return Preset{}, false
	}
	return p, true
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
