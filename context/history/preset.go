package history

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

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
	// ProtectLast of the failures that are shown as lines are never left out.
	// Default DefaultProtectLast.
	ProtectLast int
	// Budget shares out the window of prompts for which nobody says how long they
	// may be. Default none.
	Budget Budget
}

// Design is the preset of the short observations with long references.
func Design() Preset {
	return Preset{
		Style: StyleDesign, Templates: step.DesignTemplates(), Reference: step.ReferenceLong, HideOffloaded: true, Budget: React8k(),
	}
}

// Reduction is the preset of the long observations with short references.
func Reduction() Preset {
	return Preset{Style: StyleReduction, Templates: step.ReductionTemplates(), Reference: step.ReferenceShort, Budget: React8k()}
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
	p := Preset{Style: StyleGrouped}
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

// Compactor applies a preset. It has no state; all methods are safe for
// concurrent use if the counter is.
type Compactor struct {
	count  func(text string) int
	preset Preset
}

// NewCompactor returns a compactor that counts with count.
func NewCompactor(count func(text string) int, p Preset) *Compactor {
	if p.Templates.Empty() {
		p.Templates = step.DesignTemplates()
	}
	setDefault(&p.KeepRecent, DefaultKeepRecent)
	setDefault(&p.TriggerSteps, DefaultTriggerSteps)
	setDefault(&p.TriggerTokens, DefaultTriggerTokens)
	setDefault(&p.SectionTokens, DefaultSectionTokens)
	setDefault(&p.ProtectLast, DefaultProtectLast)
	return &Compactor{count: count, preset: p}
}

// Boundary returns how many of the steps a preset taken literally shows as
// lines: all but the last KeepRecent once there are more than TriggerSteps or
// TriggerTokens, none before.
func (c *Compactor) Boundary(steps []step.Step) int {
	if len(steps) <= c.preset.TriggerSteps && c.tokens(steps) <= c.preset.TriggerTokens {
		return 0
	}
	return max(len(steps)-c.preset.KeepRecent, 0)
}

// tokens is what all steps take in full.
func (c *Compactor) tokens(steps []step.Step) int {
	n := 0
	for _, s := range steps {
		n += c.count(c.Full(s))
	}
	return n
}

// Full is a step in full: what was thought, done and seen.
func (c *Compactor) Full(s step.Step) string {
	var b strings.Builder
	b.WriteString("Step " + strconv.FormatUint(s.Number, 10) + ":\n")
	if s.Thought != "" {
		b.WriteString("Thought: " + s.Thought + "\n")
	}
	args, _ := step.DecodeJSON(s.MinimalArgs)
	if args == nil {
		args = map[string]any{}
	}
	b.WriteString(`Action: {"tool": ` + string(step.SpacedJSON(s.ToolName)) + `, "args": ` + string(step.SpacedJSON(args)) + "}\n")
	b.WriteString("Observation: " + s.ToObservation(c.preset.Reference))
	if s.Inline != "" && !c.hides(s) {
		b.WriteString("\n" + s.Inline)
	}
	return b.String()
}

// hides tells whether a step in full leaves its result to its reference.
func (c *Compactor) hides(s step.Step) bool {
	return c.preset.HideOffloaded && s.NeedsOffload() && !s.Pinned
}

// line is a step in one line. One of somebody's own template that is no shorter
// than the whole gives way to the call as it was made.
func (c *Compactor) line(s step.Step) string {
	line := c.preset.Templates.Compact(s).Summary
	if c.preset.Templates.Owns(s.ToolName) && c.count(line) >= c.count(c.Full(s)) {
		return step.Called(s).Summary
	}
	return line
}

// Literal renders the steps as the preset is written: the boundary moves with
// every step.
func (c *Compactor) Literal(steps []step.Step) string {
	return c.Render(steps, c.Boundary(steps))
}

// Render renders the steps with the first older ones as lines, but for pinned
// ones, which stay in full. Without older steps only their full forms stand
// there.
func (c *Compactor) Render(steps []step.Step, older int) string {
	lines, full := split(steps, older)
	if c.preset.Style == StyleGrouped {
		return c.grouped(lines, full)
	}
	recent := make([]string, len(full))
	for i, s := range full {
		recent[i] = c.Full(s)
	}
	text := strings.Join(recent, "\n\n")
	switch {
	case len(lines) == 0:
		return text
	case c.preset.Style == StyleDesign:
		return c.Older(lines) + "\n\nRecent steps:\n" + text
	}
	return c.Older(lines) + "\n\nRecent steps:\n\n" + text
}

// Older is the section of older steps: a heading and a line for each, or what
// the style leaves of them. Without steps it is empty.
func (c *Compactor) Older(steps []step.Step) string {
	switch {
	case len(steps) == 0:
		return ""
	case c.preset.Style == StyleDesign:
		return c.section("Previous steps:", "  • ", steps)
	case c.preset.Style == StyleGrouped:
		return c.groupedSection(steps, len(steps))
	}
	return c.earlier(steps)
}

// section is a heading and a line for each step.
func (c *Compactor) section(heading, bullet string, steps []step.Step) string {
	var b strings.Builder
	b.WriteString(heading)
	for _, s := range steps {
		b.WriteString("\n" + bullet + c.line(s))
	}
	return b.String()
}

// earlier is the older section of StyleReduction: a line for each step, or what
// the fallback leaves of it.
func (c *Compactor) earlier(steps []step.Step) string {
	const heading, bullet = "Earlier steps:", "• "
	full := c.section(heading, bullet, steps)
	if c.count(full) <= c.preset.SectionTokens {
		return full
	}
	kept := c.protected(steps)
	if c.preset.Fallback == FallbackCount {
		return c.section("Earlier: "+strconv.Itoa(len(steps)-len(kept))+" steps completed", bullet, kept)
	}
	for left := 1; ; left++ {
		rest, dropped := dropOldest(steps, kept, left)
		if dropped == 0 {
			return full
		}
		text := c.section(heading+"\n"+bullet+"("+strconv.Itoa(dropped)+" earlier steps omitted)", bullet, rest)
		if dropped < left || c.count(text) <= c.preset.SectionTokens {
			return text
		}
	}
}

// dropOldest leaves out the n oldest steps, or as many as are not kept.
func dropOldest(steps, kept []step.Step, n int) (rest []step.Step, dropped int) {
	for _, s := range steps {
		if dropped < n && !slices.ContainsFunc(kept, func(k step.Step) bool { return k.Number == s.Number }) {
			dropped++
			continue
		}
		rest = append(rest, s)
	}
	return rest, dropped
}
