package main

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Compaction is what the presets of history do, whichever a session or a call
// chooses. A setting that is zero or empty is each preset's own.
type Compaction struct {
	// CompactionTriggerSteps is how many steps there may be before the older ones
	// become lines, CompactionTriggerTokens how many tokens they may have. Default 5
	// and 2000.
	CompactionTriggerSteps  int `koanf:"compaction-trigger-steps"`
	CompactionTriggerTokens int `koanf:"compaction-trigger-tokens"`
	// CompactionKeepRecent is how many of the newest stay in full. Default 3; more
	// for chat, code and debug.
	CompactionKeepRecent int `koanf:"compaction-keep-recent"`
	// CompactionMaxCompact is how many lines grouped histories have. Default that of
	// the preset.
	CompactionMaxCompact int `koanf:"compaction-max-compact"`
	// CompactionBudgetFallback is what becomes of lines that are over their tokens:
	// count, or trim. Default count.
	CompactionBudgetFallback string `koanf:"compaction-budget-fallback"`
	// TemplatesSet makes the lines: design, reduction. Default that of the preset.
	TemplatesSet string `koanf:"templates-set"`
	// ErrorsProtectLast of the failures always keep their lines. Default 10.
	ErrorsProtectLast int `koanf:"errors-protect-last"`
}

func compactionFlags(f *pflag.FlagSet, d Compaction) {
	f.Int("compaction-trigger-steps", d.CompactionTriggerSteps, "presets compact when there are more steps; 0 is the preset's own (5)")
	f.Int("compaction-trigger-tokens", d.CompactionTriggerTokens, "presets compact when the steps have more tokens; 0 is the preset's own (2000)")
	f.Int("compaction-keep-recent", d.CompactionKeepRecent, "steps that presets leave in full; 0 is the preset's own (3)")
	f.Int("compaction-max-compact", d.CompactionMaxCompact, "lines of grouped presets; 0 is the preset's own (10)")
	f.String("compaction-budget-fallback", d.CompactionBudgetFallback, "what becomes of lines over 500 tokens: count (default), trim (the oldest go first)")
	f.String("templates-set", d.TemplatesSet, "lines of older steps in presets: design, reduction (default the preset's own)")
	f.Int("errors-protect-last", d.ErrorsProtectLast, "newest failures whose lines presets never leave out; 0 is the preset's own (10)")
}

func fallbacks() map[string]history.Fallback {
	return map[string]history.Fallback{"": history.FallbackCount, "count": history.FallbackCount, "trim": history.FallbackTrim}
}

func templateSets() map[string]step.Templates {
	return map[string]step.Templates{"": {}, "design": step.DesignTemplates(), "reduction": step.ReductionTemplates()}
}

// checkCompaction checks the settings of presets.
func (c Config) checkCompaction() error {
	if _, ok := fallbacks()[c.CompactionBudgetFallback]; !ok {
		return &ConfigError{"compaction-budget-fallback", c.CompactionBudgetFallback, "is not count or trim"}
	}
	if _, ok := templateSets()[c.TemplatesSet]; !ok {
		return &ConfigError{"templates-set", c.TemplatesSet, "is not design or reduction"}
	}
	for field, value := range map[string]int{
		"compaction-trigger-steps":  c.CompactionTriggerSteps,
		"compaction-trigger-tokens": c.CompactionTriggerTokens,
		"compaction-keep-recent":    c.CompactionKeepRecent,
		"compaction-max-compact":    c.CompactionMaxCompact,
		"errors-protect-last":       c.ErrorsProtectLast,
	} {
		if value < 0 || value > maxReduction {
			return &ConfigError{field, value, "must be from 0 to 1000000"}
		}
	}
	return nil
}

// preset is a preset of history by its name, as configured.
func (c Config) preset(name string) (history.Preset, bool) {
	p, ok := history.Named(name)
	override(&p.TriggerSteps, c.CompactionTriggerSteps)
	override(&p.TriggerTokens, c.CompactionTriggerTokens)
	override(&p.KeepRecent, c.CompactionKeepRecent)
	override(&p.ProtectLast, c.ErrorsProtectLast)
	override(&p.GroupLines, c.CompactionMaxCompact)
	override(&p.Fallback, fallbacks()[c.CompactionBudgetFallback])
	if style, given := referenceStyles()[c.ReferenceStyle]; given {
		p.Reference = style
	}
	if shown, err := strconv.ParseBool(c.ReadInlineRecent); err == nil {
		p.ShowReads = shown
	}
	if set := templateSets()[c.TemplatesSet]; !set.Empty() {
		p.Templates = set
	}
	return p, ok
}

// override sets a field unless the value is the zero value.
func override[T comparable](field *T, value T) {
	var none T
	if value != none {
		*field = value
	}
}
