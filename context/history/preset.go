package history

import (
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
	// Templates make the lines. Default DesignTemplates.
	Templates Templates
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
}

// Design is the preset of the short observations with long references.
func Design() Preset {
	return Preset{Style: StyleDesign, Templates: DesignTemplates(), Reference: step.ReferenceLong, HideOffloaded: true}
}

// Reduction is the preset of the long observations with short references.
func Reduction() Preset {
	return Preset{Style: StyleReduction, Templates: ReductionTemplates(), Reference: step.ReferenceShort}
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
	if p.Templates.byTool == nil {
		p.Templates = DesignTemplates()
	}
	setDefault(&p.KeepRecent, DefaultKeepRecent)
	setDefault(&p.TriggerSteps, DefaultTriggerSteps)
	setDefault(&p.TriggerTokens, DefaultTriggerTokens)
	setDefault(&p.SectionTokens, DefaultSectionTokens)
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
	if s.Inline != "" && !(c.preset.HideOffloaded && s.NeedsOffload()) {
		b.WriteString("\n" + s.Inline)
	}
	return b.String()
}

// Literal renders the steps as the preset is written: the boundary moves with
// every step.
func (c *Compactor) Literal(steps []step.Step) string {
	return c.Render(steps, c.Boundary(steps))
}

// Render renders the steps with the first older ones as lines. Without older
// steps only their full forms stand there.
func (c *Compactor) Render(steps []step.Step, older int) string {
	older = min(max(older, 0), len(steps))
	if c.preset.Style == StyleGrouped {
		return c.grouped(steps, older)
	}
	recent := make([]string, 0, len(steps)-older)
	for _, s := range steps[older:] {
		recent = append(recent, c.Full(s))
	}
	text := strings.Join(recent, "\n\n")
	switch {
	case older == 0:
		return text
	case c.preset.Style == StyleDesign:
		return c.Older(steps[:older]) + "\n\nRecent steps:\n" + text
	}
	return c.Older(steps[:older]) + "\n\nRecent steps:\n\n" + text
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
		b.WriteString("\n" + bullet + c.preset.Templates.Compact(s).Summary)
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
	if c.preset.Fallback == FallbackCount {
		return "Earlier: " + strconv.Itoa(len(steps)) + " steps completed"
	}
	for left := 1; left < len(steps); left++ {
		text := c.section(heading+"\n"+bullet+"("+strconv.Itoa(left)+" earlier steps omitted)", bullet, steps[left:])
		if c.count(text) <= c.preset.SectionTokens {
			return text
		}
	}
	return heading + "\n" + bullet + "(" + strconv.Itoa(len(steps)) + " earlier steps omitted)"
}
