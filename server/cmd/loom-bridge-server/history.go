package main

import (
	"errors"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
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
	own := session.Config{Policy: c.HistoryPolicy, Preset: c.HistoryPreset}
	if c.HistoryLiteral {
		own.Literal = &c.HistoryLiteral
	}
	return own.Over(session.Config{Policy: session.PolicyLedger})
}
