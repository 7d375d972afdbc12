package main

import (
	"errors"
	"os"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// checkHistory checks the settings of histories.
func (c Config) checkHistory() error {
	bad, ok := errors.AsType[*session.InvalidError](c.history().Check())
	switch {
	case !ok:
		return nil
	case strings.HasSuffix(bad.Field, "preset"):
		return &ConfigError{"history-preset", c.HistoryPreset, bad.Problem}
	}
	return &ConfigError{"history-policy", c.HistoryPolicy, bad.Problem}
}

// history is what holds for sessions that say nothing, as configured.
func (c Config) history() session.Config {
	return session.Config{Policy: c.HistoryPolicy, Preset: c.HistoryPreset}.Over(session.Config{Policy: session.PolicyLedger})
}

// loadRules reads the user's rules over the built-in ones; without a file they
// stand alone.
func loadRules(path string) (step.Rules, error) {
	if path == "" {
		return step.Rules{}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return step.Rules{}, &ConfigError{"rules", path, err.Error()}
	}
	rules, err := step.LoadRules(text)
	if err != nil {
		return step.Rules{}, &ConfigError{"rules", path, err.Error()}
	}
	return rules, nil
}
