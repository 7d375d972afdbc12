package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Prompts says which tools stand in the prompts of sessions that say nothing.
type Prompts struct {
	// ToolNames are offered in addition to tools of level 1; LevelOf is the level of some
	// tools by name.
	ToolNames []string
	LevelOf   map[string]int
	// AssembleCache keeps prompts for calls that would make the same ones again.
	AssembleCache bool
}

const (
	keyToolLevel = "tool-level"
	keyToolNames = "tool-names"
)

func (c *Config) promptSettings() []setting {
	p := &c.Prompts
	return []setting{
		{keyToolNames, list(&p.ToolNames, "name,..."), nil, "tools in prompts in addition to those of level 1, such as fs:* and tools of agents"},
		{keyToolLevel, named(&p.LevelOf, "name=level", checkLevelOf), nil, "level of a tool of the server, such as fs:delete=2"},
		{"assemble-cache", yes(&p.AssembleCache), nil, "reuse a prompt if none of its inputs has changed"},
	}
}

func checkLevelOf(name string, level int) error {
	if name == "" || len(name) > tools.MaxNameBytes {
		return fmt.Errorf("%q is no name of a tool", name)
	}
	return between(level, tools.LevelFunction, tools.LevelScript)
}

// checkPrompts checks the names of tools.
func (c Config) checkPrompts() error {
	p := settings.Prompt{Tools: &settings.Tools{Names: c.ToolNames}}
	if bad, ok := errors.AsType[*invalid.Error](p.Check("prompt")); ok {
		item := strings.TrimPrefix(bad.Field, "prompt.tools.names")
		return &ConfigError{keyToolNames, strings.Join(c.ToolNames, ","), strings.TrimSpace(item + " " + bad.Problem)}
	}
	return nil
}

// levelError is an error of opening the domain, as one of the setting where it is.
func (c Config) levelError(err error) error {
	if unknown, ok := errors.AsType[*tools.NotFoundError](err); ok && len(c.LevelOf) > 0 {
		problem := fmt.Sprintf("%q is no tool of the server", unknown.Name)
		if unknown.Nearest != "" {
			problem += ", nearest is " + unknown.Nearest
		}
		return &ConfigError{keyToolLevel, printNamed(c.LevelOf), problem}
	}
	return err
}

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
