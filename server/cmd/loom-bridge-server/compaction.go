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
	return map[string]history.Fallback{"count": history.FallbackCount, "trim": history.FallbackTrim}
}

func templateSets() map[string]step.Templates {
	return map[string]step.Templates{"design": step.DesignTemplates(), "reduction": step.ReductionTemplates()}
}

// preset is a preset of history by its name, with the settings laid over it.
func (c Config) preset(name string) (history.Preset, bool) {
	p, ok := history.Named(name)
	settings := history.Preset{
		Templates: templateSets()[c.TemplatesSet], Reference: referenceStyles()[c.ReferenceStyle],
		Observation: observationStyles()[c.ObservationStyle], Offload: c.OffloadPreset,
		KeepRecent: c.CompactionKeepRecent, TriggerSteps: c.CompactionTriggerSteps, TriggerTokens: c.CompactionTriggerTokens,
		Fallback: fallbacks()[c.CompactionBudgetFallback], GroupLines: c.CompactionMaxCompact, ProtectLast: c.ErrorsProtectLast,
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
