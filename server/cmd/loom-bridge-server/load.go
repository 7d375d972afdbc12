package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

const (
	// envPrefix begins the environment name of every setting.
	envPrefix = "LOOM_BRIDGE_"
	// rustLog is the log level of loom.v1 cores; LOOM_BRIDGE_LOG_LEVEL is
	// stronger.
	rustLog = "RUST_LOG"
)

// rawValue is the text of a flag. It is read and checked with the values of the
// file and the environment.
type rawValue struct {
	text, unit string
	// repeats says that a further text goes behind the one before.
	repeats, given bool
}

func (v *rawValue) Set(text string) error {
	if v.repeats && v.given {
		text = v.text + "," + text
	}
	v.text, v.given = text, true
	return nil
}

func (v *rawValue) String() string { return v.text }
func (v *rawValue) Type() string   { return v.unit }

// configFlags returns a flag for each of these settings, or for every setting, with its
// default.
func configFlags(names ...string) *pflag.FlagSet {
	f := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	f.SortFlags = false
	add := func(of *pflag.Flag) {
		flag, value := *of, *of.Value.(*rawValue)
		flag.Value = &value
		f.AddFlag(&flag)
	}
	for _, name := range names {
		add(defaultFlags().Lookup(name))
	}
	if len(names) == 0 {
		defaultFlags().VisitAll(add)
	}
	return f
}

// defaultFlags are the flags of all settings, made once for all commands; none is ever set.
var defaultFlags = sync.OnceValue(func() *pflag.FlagSet {
	c := NewConfig()
	f := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	f.SortFlags = false
	for _, s := range c.settings() {
		flag := f.VarPF(&rawValue{text: s.to.String(), unit: s.to.unit(), repeats: repeats(s.to)}, s.name, "", s.help)
		if _, ok := s.to.(scalar[bool]); ok {
			flag.NoOptDefVal = "true"
		}
	}
	return f
})

// loadConfig reads the settings of the command whose flags are given: a flag is
// stronger than the environment, which is stronger than the file, which is
// stronger than the default.
func loadConfig(flags *pflag.FlagSet, getenv func(string) string) (Config, error) {
	c := NewConfig()
	path := getenv(envName(keyConfig))
	if flag := flags.Lookup(keyConfig); flag != nil && flag.Changed {
		path = flag.Value.String()
	}
	fromFile, written, err := readSettings(path)
	if err != nil {
		return Config{}, err
	}
	c.sources = map[string]source{}
	for _, s := range c.settings() {
		value, from := sourced(s.name, path, fromFile, flags, getenv)
		if from.by == "" {
			continue
		}
		c.sources[s.name] = from
		if err := s.to.Set(value); err != nil {
			if s.name == keyStore { // it may hold a password
				value = stores.Hide(value)
			}
			return Config{}, &ConfigError{s.name, value, err.Error()}
		}
	}
	if err := c.Web.readLoom(getenv); err != nil {
		return Config{}, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	if c.Store.Dir != "" {
		c.DataDir = c.Store.Dir
	}
	c.Dashboard = readDashboard(getenv)
	if c.Hosted, c.NotHosted, err = mcp.ParseTables(written, getenv); err != nil {
		return Config{}, fmt.Errorf("settings file %s: %w", path, err)
	}
	if c.Redact, err = c.redactor(written); err != nil {
		return Config{}, fmt.Errorf("settings file %s: %w", path, err)
	}
	c.Policies, err = c.readPolicies(path, written, getenv)
	return c, err
}

// Names of the setting of redaction, and of the table with own patterns.
const (
	keyRedact      = "redact"
	redactPatterns = "redact-patterns"
)

// redactor looks for what the settings say; nil where that is nothing.
func (c *Config) redactor(written []byte) (*redact.Redactor, error) {
	var tables struct {
		Patterns map[string]string `toml:"redact-patterns"`
	}
	if err := toml.Unmarshal(written, &tables); err != nil {
		return nil, fmt.Errorf("table %s: %w", redactPatterns, err)
	}
	var own []redact.Own
	for _, name := range slices.Sorted(maps.Keys(tables.Patterns)) {
		pattern, err := redact.ParseOwn(name + "=" + tables.Patterns[name])
		if err != nil {
			return nil, err
		}
		own = append(own, pattern)
	}
	names := slices.DeleteFunc(slices.Clone(c.RedactNames), func(name string) bool { return name == redactOwn })
	if len(c.RedactNames) == 0 {
		own = nil
	}
	return redact.New(names, own)
}

// readSettings returns the settings of a TOML file as text, and the file itself, which also
// has the tables of package policy; nothing for an empty path.
func readSettings(path string) (map[string]string, []byte, error) {
	if path == "" {
		return nil, nil, nil
	}
	written, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("settings file: %w", err)
	}
	var tree map[string]any
	if err := toml.Unmarshal(written, &tree); err != nil {
		return nil, nil, fmt.Errorf("settings file %s: %w", path, err)
	}
	for _, key := range append(policy.Keys(), mcp.Key, redactPatterns) {
		delete(tree, key)
	}
	values := map[string]string{}
	flatten(tree, "", values)
	known := settingNames()
	known = slices.DeleteFunc(known, func(name string) bool { return name == keyConfig })
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return nil, nil, fmt.Errorf("settings file %s: unknown key %q, nearest is %q", path, name, text.Nearest(name, known))
		}
	}
	return values, written, nil
}

// flatten writes the values of tables as text, named with dots.
func flatten(tree map[string]any, prefix string, values map[string]string) {
	for key, value := range tree {
		if below, ok := value.(map[string]any); ok {
			flatten(below, prefix+key+".", values)
			continue
		}
		values[prefix+key] = written(value)
	}
}

// written is a value of a file as text. A list has commas between.
func written(value any) string {
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprint(value)
	}
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = fmt.Sprint(list[i])
	}
	return strings.Join(parts, ",")
}

// settingNames are the names of all settings.
func settingNames() []string {
	var names []string
	c := Config{}
	for _, s := range c.settings() {
		names = append(names, s.name)
	}
	return names
}

// suggestFlag adds the flag that was most likely meant to the error about an unknown one.
func suggestFlag(flags *pflag.FlagSet, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	known := []string{"help"}
	flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near, ok := text.Near(unknown.GetSpecifiedName(), known); ok {
		return fmt.Errorf("%w, nearest is --%s", err, near)
	}
	return err
}
