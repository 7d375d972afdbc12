package main

import (
	"os"

	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Reduction is how the results of calls are kept and shown.
type Reduction struct {
	// Rules is a file, over the built-in ones.
	Rules               string
	ToolResultMaxTokens int
	// CompressAdaptive lets the threshold of CompressResult follow the pressure.
	CompressAdaptive bool
}

// reduction is how calls become steps, as configured. The file of rules is
// stronger than the preset.
func (c Config) reduction() (step.Options, error) {
	p := c.ownPreset()
	rules, err := step.BuiltinRules().WithOffload(p.Offload)
	if err == nil {
		rules, err = loadRules(c.Rules, rules)
	}
	return step.Options{Rules: rules, Style: p.Observation}, err
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
	return compress.Options{Adaptive: c.CompressAdaptive, ResultTokens: c.ToolResultMaxTokens}
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

// ownPreset is what steps are recorded by where no session says otherwise: the
// preset of the server's settings.
func (c Config) ownPreset() history.Preset {
	p, _ := history.Named(c.HistoryPreset)
	return p
}
