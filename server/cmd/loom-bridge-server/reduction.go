package main

import (
	"os"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// Reduction is how the results of calls are kept and shown. An empty style is
// that of the server's history preset, and without one the default.
type Reduction struct {
	OffloadPreset, ObservationStyle, ReferenceStyle, OutputsNaming string
	// ReadInlineRecent is true, false or, for each preset's own, empty.
	ReadInlineRecent string

	SearchInlineSmall, WriteStoreContent        bool
	ErrorsObservationChars, ToolResultMaxTokens int
}

// reduction is how calls become steps, as configured. The file of rules is
// stronger than the settings.
func (c Config) reduction() (step.Options, error) {
	p := c.ownPreset()
	rules, err := step.BuiltinRules().WithOffload(p.Offload)
	if err == nil && c.SearchInlineSmall {
		rules, err = rules.With([]byte("[tools.\"" + step.ToolSearchWeb + "\"]\nfrom_items = 6\nfrom_bytes = 1024\n"))
	}
	if err == nil {
		rules, err = loadRules(c.Rules, rules)
	}
	if err != nil {
		return step.Options{}, err
	}
	o := step.Options{Rules: rules, Style: p.Observation, ComplaintChars: c.ErrorsObservationChars}
	if p.Offload == step.OffloadSizeOrLines {
		o.PreviewLines = step.OffloadPreviewLines
	}
	return o, nil
}

// keepShortTerm says whether short-term memory outlives the server, or nil for what
// presets say.
func (c Config) keepShortTerm() *bool {
	if c.ShortTermPersist == "" {
		return nil
	}
	return new(c.ShortTermPersist == "true")
}

// cacheBytes is how much of prompts is kept, for package assemble.
func (c Config) cacheBytes() int {
	if c.AssembleCache {
		return -1 // as much as by default
	}
	return 0
}

// compress is how CompressResult shortens, as configured.
func (c Config) compress() compress.Options {
	o := c.Compress
	o.ResultTokens = c.ToolResultMaxTokens
	return o
}

// blobs is how long blobs are kept and how they are called, as configured.
func (c Config) blobs() blob.Options {
	o := c.Blobs
	o.Naming, _ = blob.ParseNaming(c.OutputsNaming)
	return o
}

// loadRules reads the user's rules over those there are; without a file these
// stand alone.
func loadRules(path string, under step.Rules) (step.Rules, error) {
	if path == "" {
		return under, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return step.Rules{}, &ConfigError{"rules", path, err.Error()}
	}
	rules, err := under.With(text)
	if err != nil {
		return step.Rules{}, &ConfigError{"rules", path, err.Error()}
	}
	return rules, nil
}

// Compaction is what the presets of history do, whichever a session or a call
// chooses. A setting that is zero or empty is each preset's own.
type Compaction struct {
	CompactionTriggerSteps, CompactionTriggerTokens, CompactionKeepRecent, CompactionMaxCompact int

	CompactionBudgetFallback, TemplatesSet, HistoryStyle string
	ErrorsProtectLast                                    int

	ToolResults, DecayUnit, SummaryMode, SummaryTool        string
	DecayFull, DecayFold, DecayImageTurns, SummaryMaxTokens int
	SummaryTimeout                                          time.Duration
	// Score is what the messages are worth that a summary may leave out.
	Score decay.Scoring

	// What the levels of pressure do. No thresholds are their own.
	PressureThresholds                              []float64
	PressureInclusive, MicroSameContent             bool
	PressureRenew                                   float64
	MicroPreviewChars, SnipChars, SnipReactiveChars int
	ScoreRel                                        string
}

// pressureSettings are the settings of the levels of pressure.
func (c *Config) pressureSettings() []setting {
	chars := func(to *int) field { return number(to, "characters", 0, window.MaxChars) }
	return []setting{
		{"pressure-thresholds", decimals(&c.PressureThresholds, "fractions"), nil, "four pressures over which the levels begin; none: 0.7,0.8,0.9,0.95"},
		{"pressure-inclusive-thresholds", yes(&c.PressureInclusive), nil, "let levels begin at their thresholds, not over them"},
		{"pressure-renew", fraction(&c.PressureRenew), window.DefaultRenew, "pressure from which a window begins anew"},
		{"micro-same-content", yes(&c.MicroSameContent), true, "show equal results of other calls once, too"},
		{"micro-preview-chars", chars(&c.MicroPreviewChars), 0, "characters shown of longer stored results, such as 240; 0: all"},
		{"snip-chars", chars(&c.SnipChars), 0, "characters that are left of a text; 0: 2000"},
		{"snip-reactive-chars", chars(&c.SnipReactiveChars), 0, "the same after a provider refused a prompt; 0: 500"},
		{"score-rel", nearnesses().choice(&c.ScoreRel), nil, "how near messages are to the goal under pressure; none: lexical"},
	}
}

func nearnesses() choices[window.Nearness] {
	return choices[window.Nearness]{{"lexical", window.Lexical}, {"embedding", window.Embedding}}
}

// pressure are the rules of levels that the settings name.
func (c Compaction) pressure() window.Keys {
	k := window.Keys{
		Renew: c.PressureRenew, SnipChars: c.SnipChars, ReactiveChars: c.SnipReactiveChars, Nearness: nearnesses().named(c.ScoreRel),
	}
	copy(k.Thresholds[:], c.PressureThresholds)
	if c.PressureInclusive {
		k.Inclusive = &c.PressureInclusive
	}
	if !c.MicroSameContent {
		k.SameContent = &c.MicroSameContent
	}
	if c.MicroPreviewChars > 0 {
		k.PreviewChars = &c.MicroPreviewChars
	}
	return k
}

// keys are the rules of presets that the settings name one by one.
func (c Compaction) keys() history.Keys {
	return history.Keys{
		Style: styles().named(c.HistoryStyle), Results: results().named(c.ToolResults),
		Zones: history.Zones{
			Unit: units().named(c.DecayUnit), Full: c.DecayFull, Fold: c.DecayFold, ImageTurns: c.DecayImageTurns,
		},
		Summary: history.Summarizing{
			Mode: summaryModes().named(c.SummaryMode), MaxTokens: c.SummaryMaxTokens, Timeout: c.SummaryTimeout, Tool: c.SummaryTool,
		},
	}
}

// choices is what the names of a setting stand for, in the order of its help.
type choices[T any] []struct {
	name  string
	value T
}

func observationStyles() choices[step.ObservationStyle] {
	return choices[step.ObservationStyle]{{"reduction", step.ObservationFull}, {"design", step.ObservationDesign}}
}

func referenceStyles() choices[step.ReferenceStyle] {
	return choices[step.ReferenceStyle]{{"hint", step.ReferenceHint}, {"short", step.ReferenceShort}, {"long", step.ReferenceLong}}
}

func fallbacks() choices[history.Fallback] {
	return choices[history.Fallback]{{"count", history.FallbackCount}, {"trim", history.FallbackTrim}}
}

func styles() choices[history.Style] {
	return choices[history.Style]{{"design", history.StyleDesign}, {"reduction", history.StyleReduction}, {"grouped", history.StyleGrouped}}
}

func results() choices[history.Results] {
	return choices[history.Results]{
		{"observation", history.ResultsObservation},
		{"omit", history.ResultsOmit},
		{"compressed", history.ResultsCompressed},
		{"full", history.ResultsFull},
	}
}

func units() choices[history.Unit] {
	return choices[history.Unit]{{"messages", history.UnitMessages}, {"turns", history.UnitTurns}}
}

func summaryModes() choices[history.SummaryMode] {
	return choices[history.SummaryMode]{{"extractive", history.SummaryExtractive}, {"callback", history.SummaryCallback}}
}

func templateSets() choices[step.Templates] {
	return choices[step.Templates]{{"design", step.DesignTemplates()}, {"reduction", step.ReductionTemplates()}}
}

// named is what a name stands for; the zero value for no name.
func (v choices[T]) named(name string) (value T) {
	for _, one := range v {
		if one.name == name {
			return one.value
		}
	}
	return value
}

// choice is a setting that is one of the names, or none of them.
func (v choices[T]) choice(to *string) scalar[string] {
	names := make([]string, len(v))
	for i, one := range v {
		names[i] = one.name
	}
	return optional(choice(to, names...))
}

// preset is a preset of history by its name, with the settings laid over it.
func (c Config) preset(name string) (history.Preset, bool) {
	p, ok := history.Named(name)
	settings := history.Preset{
		Templates: templateSets().named(c.TemplatesSet), Reference: referenceStyles().named(c.ReferenceStyle),
		Observation: observationStyles().named(c.ObservationStyle), Offload: c.OffloadPreset,
		KeepRecent: c.CompactionKeepRecent, TriggerSteps: c.CompactionTriggerSteps, TriggerTokens: c.CompactionTriggerTokens,
		Fallback: fallbacks().named(c.CompactionBudgetFallback), GroupLines: c.CompactionMaxCompact, ProtectLast: c.ErrorsProtectLast,
	}
	if c.ReadInlineRecent != "" {
		settings.ShowReads = new(c.ReadInlineRecent == "true")
	}
	return settings.Over(p).With(c.keys()), ok
}

// ownPreset is what steps are recorded by where no session says otherwise: the
// preset of the server's settings, or the settings alone.
func (c Config) ownPreset() history.Preset {
	p, _ := c.preset(c.HistoryPreset)
	return p
}
