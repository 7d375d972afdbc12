package main

import (
	"os"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
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

	CompactionBudgetFallback, TemplatesSet string
	ErrorsProtectLast                      int
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
	return settings.Over(p), ok
}

// ownPreset is what steps are recorded by where no session says otherwise: the
// preset of the server's settings, or the settings alone.
func (c Config) ownPreset() history.Preset {
	p, _ := c.preset(c.HistoryPreset)
	return p
}
