package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

// source says where the value of a setting comes from: by is flag, environment, file or default,
// and name is the flag, the variable or the file.
type source struct{ by, name string }

// sourced returns the text of a setting and where it comes from: a flag is stronger than the
// environment, which is stronger than the file. The zero source is of one that nobody gave.
func sourced(name, path string, fromFile map[string]string, flags *pflag.FlagSet, getenv func(string) string) (text string, from source) {
	if value, ok := fromFile[name]; ok {
		text, from = value, source{"file", path}
	}
	if level := strings.ToLower(getenv(rustLog)); name == keyLogLevel && checkLevel(level) == nil {
		text, from = level, source{"environment", rustLog}
	}
	for _, variable := range append([]string{envName(name)}, loomNames[name]...) {
		if value := getenv(variable); value != "" {
			text, from = value, source{"environment", variable}
			break
		}
	}
	if flag := flags.Lookup(name); flag != nil && flag.Changed {
		text, from = flag.Value.String(), source{"flag", "--" + name}
	}
	return text, from
}

// inForce is a setting as it holds, for who runs the server.
type inForce struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	Help  string `json:"help"`
	// Value is how the setting is written; empty for one that says nothing.
	Value string `json:"value"`
	By    string `json:"by"`
	From  string `json:"from,omitempty"`
}

// hidden is shown in place of a secret.
const hidden = "(not shown)"

// addressUser and addressQuery are what may be secret in an address: who asks, and the parameters.
var (
	addressUser  = regexp.MustCompile(`://[^/@\s,]*@`)
	addressQuery = regexp.MustCompile(`(://[^?\s,]*)\?[^\s,]*`)
)

// inForce are all settings, without their secrets.
func (c *Config) inForce() []inForce {
	secrets := c.secretValues()
	all := []inForce{}
	for _, g := range c.groups() {
		for _, s := range g.settings {
			text := shown(s.to)
			switch {
			case text == "":
			case s.name == keyStore:
				text = stores.Hide(text)
			case secrets[s.name] != "":
				text = hidden
			default:
				text = addressQuery.ReplaceAllString(addressUser.ReplaceAllString(text, "://"), "$1")
			}
			from := c.sources[s.name]
			if from.by == "" {
				from.by = "default"
			}
			all = append(all, inForce{s.name, g.title, s.help, text, from.by, from.name})
		}
	}
	return all
}

// serveInForce answers with them.
func (c *Config) serveInForce(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"settings": c.inForce()}) // who does not read it has left
}
