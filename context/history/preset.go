package history

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

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
	// summarized; see Zones and package decay.
	StyleZones
	// StyleNewest shows the newest messages that fit, and nothing of the others.
	StyleNewest
	// StyleLevels shows messages as levels of pressure leave them; see package window.
	StyleLevels
)

// Messages tells whether the style shows messages by their age, not steps as lines.
func (s Style) Messages() bool { return s == StyleZones || s == StyleNewest || s == StyleLevels }

// Results is what a prompt shows of the results of calls that it has in full.
type Results uint8

// The choices.
const (
	// ResultsObservation shows what was observed of results that a preset hides, and
	// the others whole. The default.
	ResultsObservation Results = iota + 1
	// ResultsOmit shows none: calls become text.
	ResultsOmit
	// ResultsCompressed shows the short forms of package compress.
	ResultsCompressed
	// ResultsFull shows them whole.
	ResultsFull
)

// Unit is what Zones count.
type Unit uint8

// The units.
const (
	// UnitMessages are messages of the prompt: a call and its result are two. The
	// default.
	UnitMessages Unit = iota + 1
	// UnitTurns are turns of the user, who begins each with a message.
	UnitTurns
)

// Zones are how StyleZones parts a history by age. A zero field means its default.
type Zones struct {
	// Unit is what Full and Fold count. Default UnitMessages.
	Unit Unit
	// Full of the newest stand in full. Default DefaultZoneFull.
	Full int
	// Fold before those are shortened; all older ones are summarized. Default
	// DefaultZoneFold.
	Fold int
	// ImageTurns is how many turns before the newest keep their images. Default
	// DefaultImageTurns.
	ImageTurns int
}

// Over returns base with the fields that z sets.
func (z Zones) Over(base Zones) Zones {
	return Zones{
		Unit: cmp.Or(z.Unit, base.Unit), Full: cmp.Or(z.Full, base.Full), Fold: cmp.Or(z.Fold, base.Fold),
		ImageTurns: cmp.Or(z.ImageTurns, base.ImageTurns),
	}
}

// SummaryMode is how the zone of oldest messages is summarized.
type SummaryMode uint8

// The modes.
const (
	// SummaryExtractive takes the first sentences of messages. The default.
	SummaryExtractive SummaryMode = iota + 1
	// SummaryCallback asks a tool of the caller's. What it gives late, empty or too
	// long is replaced by the first sentences.
	SummaryCallback
)

// Summarizing is how StyleZones summarizes. A zero field means its default.
type Summarizing struct {
	// Mode is how. Default SummaryExtractive.
	Mode SummaryMode
	// MaxTokens bounds a summary. Default DefaultSummaryTokens.
	MaxTokens int
	// Timeout bounds a call of Tool. Default DefaultSummaryTimeout.
	Timeout time.Duration
	// Tool is what SummaryCallback calls.
	Tool string
}

// Over returns base with the fields that s sets.
func (s Summarizing) Over(base Summarizing) Summarizing {
	return Summarizing{
		Mode: cmp.Or(s.Mode, base.Mode), MaxTokens: cmp.Or(s.MaxTokens, base.MaxTokens),
		Timeout: cmp.Or(s.Timeout, base.Timeout), Tool: cmp.Or(s.Tool, base.Tool),
	}
}

// Keys are single rules that beat those of any preset. A zero field leaves the
// preset's own.
type Keys struct {
	// Style is that of presets that show steps as lines; of others it stays.
	Style                                   Style
	KeepRecent, TriggerSteps, TriggerTokens int
	Results                                 Results
	Zones                                   Zones
	Summary                                 Summarizing
}

// Over returns base with the fields that k sets.
func (k Keys) Over(base Keys) Keys {
	return Keys{
		Style:         cmp.Or(k.Style, base.Style),
		KeepRecent:    cmp.Or(k.KeepRecent, base.KeepRecent),
		TriggerSteps:  cmp.Or(k.TriggerSteps, base.TriggerSteps),
		TriggerTokens: cmp.Or(k.TriggerTokens, base.TriggerTokens),
		Results:       cmp.Or(k.Results, base.Results),
		Zones:         k.Zones.Over(base.Zones),
		Summary:       k.Summary.Over(base.Summary),
	}
}

// With returns the preset with the keys that are set.
func (p Preset) With(k Keys) Preset {
	own := Preset{
		KeepRecent: k.KeepRecent, TriggerSteps: k.TriggerSteps, TriggerTokens: k.TriggerTokens,
		Results: k.Results, Zones: k.Zones, Summary: k.Summary,
	}
	if !p.Style.Messages() {
		own.Style = k.Style
	}
	return own.Over(p)
}

// Fallback is what becomes of an older section that is over its tokens.
type Fallback uint8

// The fallbacks.
const (
	// FallbackCount says only how many steps there were. The default.
	FallbackCount Fallback = iota + 1
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
	// DefaultZoneFull of the newest messages stand in full, DefaultZoneFold before
	// those are shortened.
	DefaultZoneFull = 4
	DefaultZoneFold = 6
	// DefaultImageTurns before the newest keep their images.
	DefaultImageTurns = 2
	// DefaultSummaryTimeout bounds the call of a tool that summarizes.
	DefaultSummaryTimeout = 10 * time.Second
	// manySteps: from more steps than this on a grouped history has room for
	// manyGroupLines.
	manySteps      = 100
	manyGroupLines = 27
)

// Preset is everything that a server and a session take from a preset: how steps are
// recorded, what of a history a prompt shows in full, what it has one line for, and how
// long a prompt is. It goes by fixed rules, without prices. A zero field means its
// default, or, in a preset that is laid over another, the other's.
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
	// read by its reference, with ResultsObservation. Default false.
	HideOffloaded bool
	// ShowReads shows what fs:read_file read all the same, as long as its step is in
	// full. Default false.
	ShowReads *bool
	// ProtectLast of the failures that are shown as lines are never left out.
	// Default DefaultProtectLast.
	ProtectLast int
	// Results is what stands for the results of calls in full. Default
	// ResultsObservation.
	Results Results
	// Zones and Summary are those of StyleZones.
	Zones   Zones
	Summary Summarizing
	// Budget shares out the window of prompts for which nobody says how long they
	// may be. Default none.
	Budget Budget
	// Layout and Rendering are the order of the sections of prompts and how they offer
	// tools, as package settings calls them. Default: as without a preset.
	Layout, Rendering string
}

// presets are the presets that have a name.
var presets = sync.OnceValue(func() []Preset {
	grouped := Preset{Style: StyleGrouped, HideOffloaded: true, ShowReads: new(true)}
	return []Preset{
		// Short observations with long references. Results that were offloaded are hidden
		// from the start.
		{
			Name: "design", Style: StyleDesign, Templates: step.DesignTemplates(), Reference: step.ReferenceLong,
			Observation: step.ObservationDesign, Offload: step.OffloadDesign, Forgets: true, NumberKinds: true, HideOffloaded: true, Budget: React8k(),
			Layout: "react", Rendering: "text",
		},
		// Long observations with short references. Results that were offloaded are hidden
		// from the start, but for files that were read.
		{
			Name: "reduction", Style: StyleReduction, Templates: step.ReductionTemplates(), Reference: step.ReferenceShort,
			Observation: step.ObservationFull, Offload: step.OffloadReduction, NumberKinds: true, HideOffloaded: true,
			ShowReads: new(true), Budget: React8k(), Layout: "react", Rendering: "text",
		},
		// What others say of a task, without the results of their calls.
		{
			Name: "task_context", Style: StyleNewest, Templates: step.DesignTemplates(), Reference: step.ReferenceHint,
			Observation: step.ObservationFull, Offload: step.OffloadReduction, HideOffloaded: true, ShowReads: new(true), Results: ResultsOmit,
			Budget: Budget{Recent: 4000}, Layout: "task_context", Rendering: "parameter",
		},
		// A long window, whose messages fade by age. A quarter is left to the response.
		{
			Name: "three_phase", Style: StyleZones, Templates: step.DesignTemplates(), Reference: step.ReferenceHint,
			Observation: step.ObservationFull, Offload: step.OffloadCompressor, HideOffloaded: true, ShowReads: new(true), Results: ResultsCompressed,
			KeepOnWrite: true, Budget: Budget{Recent: 150_000, Response: 50_000}, Layout: "three_phase", Rendering: "text",
		},
		// A long window in five parts, whose history gives way by levels of pressure.
		{
			Name: "partitioned", Style: StyleLevels, Templates: step.DesignTemplates(), Reference: step.ReferenceHint,
			Observation: step.ObservationFull, Offload: step.OffloadReduction, HideOffloaded: true, ShowReads: new(true), Results: ResultsFull,
			Budget: Budget{Recent: 200_000}, Layout: "partitioned", Rendering: "parameter",
		},
		// Grouped histories for a sort of work.
		Preset{Name: "chat", KeepRecent: 5, GroupLines: 20}.Over(grouped),
		Preset{Name: "research", KeepRecent: 3, GroupLines: 10}.Over(grouped),
		Preset{Name: "code", KeepRecent: 5, GroupLines: 15}.Over(grouped),
		Preset{Name: "debug", KeepRecent: 7, GroupLines: 10, NoGroups: true}.Over(grouped),
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

// Over returns base with the fields that p sets.
func (p Preset) Over(base Preset) Preset {
	if p.Templates.Empty() {
		p.Templates = base.Templates
	}
	return Preset{
		Name:          cmp.Or(p.Name, base.Name),
		Style:         cmp.Or(p.Style, base.Style),
		Templates:     p.Templates,
		Reference:     cmp.Or(p.Reference, base.Reference),
		Observation:   cmp.Or(p.Observation, base.Observation),
		Offload:       cmp.Or(p.Offload, base.Offload),
		Forgets:       p.Forgets || base.Forgets,
		KeepOnWrite:   p.KeepOnWrite || base.KeepOnWrite,
		NumberKinds:   p.NumberKinds || base.NumberKinds,
		KeepRecent:    cmp.Or(p.KeepRecent, base.KeepRecent),
		TriggerSteps:  cmp.Or(p.TriggerSteps, base.TriggerSteps),
		TriggerTokens: cmp.Or(p.TriggerTokens, base.TriggerTokens),
		SectionTokens: cmp.Or(p.SectionTokens, base.SectionTokens),
		Fallback:      cmp.Or(p.Fallback, base.Fallback),
		GroupLines:    cmp.Or(p.GroupLines, base.GroupLines),
		NoGroups:      p.NoGroups || base.NoGroups,
		HideOffloaded: p.HideOffloaded || base.HideOffloaded,
		ShowReads:     cmp.Or(p.ShowReads, base.ShowReads),
		ProtectLast:   cmp.Or(p.ProtectLast, base.ProtectLast),
		Results:       cmp.Or(p.Results, base.Results),
		Zones:         p.Zones.Over(base.Zones),
		Summary:       p.Summary.Over(base.Summary),
		Budget:        cmp.Or(p.Budget, base.Budget),
		Layout:        cmp.Or(p.Layout, base.Layout),
		Rendering:     cmp.Or(p.Rendering, base.Rendering),
	}
}

// WithDefaults fills in the defaults, but for that of GroupLines, which depends on
// the number of steps.
func (p Preset) WithDefaults() Preset {
	if p.Templates.Empty() {
		p.Templates = step.DesignTemplates()
	}
	return p.Over(Preset{
		Style: StyleReduction, KeepRecent: DefaultKeepRecent, TriggerSteps: DefaultTriggerSteps, TriggerTokens: DefaultTriggerTokens,
		SectionTokens: DefaultSectionTokens, ProtectLast: DefaultProtectLast, ShowReads: new(false), Results: ResultsObservation,
		Zones:   Zones{Unit: UnitMessages, Full: DefaultZoneFull, Fold: DefaultZoneFold, ImageTurns: DefaultImageTurns},
		Summary: Summarizing{Mode: SummaryExtractive, MaxTokens: DefaultSummaryTokens, Timeout: DefaultSummaryTimeout},
	})
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
