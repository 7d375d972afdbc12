package main

import (
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Compaction is what the presets of history do, whichever a session or a call
// chooses. A setting that is zero or empty is each preset's own.
type Compaction struct {
	CompactionTriggerSteps, CompactionTriggerTokens, CompactionKeepRecent, CompactionMaxCompact int

	CompactionBudgetFallback, TemplatesSet string
	ErrorsProtectLast                      int
}

func fallbacks() map[string]history.Fallback {
	return map[string]history.Fallback{"": history.FallbackCount, "count": history.FallbackCount, "trim": history.FallbackTrim}
}

func templateSets() map[string]step.Templates {
	return map[string]step.Templates{"": {}, "design": step.DesignTemplates(), "reduction": step.ReductionTemplates()}
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
	if c.ReadInlineRecent != "" {
		p.ShowReads = c.ReadInlineRecent == "true"
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
