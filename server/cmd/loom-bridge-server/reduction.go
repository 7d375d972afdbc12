package main

import (
	"os"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
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

func observationStyles() map[string]step.ObservationStyle {
	return map[string]step.ObservationStyle{"reduction": step.ObservationFull, "design": step.ObservationDesign}
}

func referenceStyles() map[string]step.ReferenceStyle {
	return map[string]step.ReferenceStyle{"hint": step.ReferenceHint, "short": step.ReferenceShort, "long": step.ReferenceLong}
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
