package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// Limits of servers: of one tenant, and of what one is described by, in bytes.
const (
	MaxServers      = 64
	MaxServerName   = 48
	MaxServerBytes  = 64 << 10
	MaxServerFields = 256 // arguments, variables or headers
)

// Server is one server: a program, or an address.
type Server struct {
	// Name stands in front of the names of its tools.
	Name string `json:"name" toml:"-"`
	// Command and Args are the program. Exactly one of Command and URL is set.
	Command string   `json:"command" toml:"command"`
	Args    []string `json:"args" toml:"args"`
	// Env are further variables of the program.
	Env map[string]string `json:"env" toml:"env"`
	// Cwd is where it starts, relative to the workspace. Default: the workspace.
	Cwd string `json:"cwd" toml:"cwd"`
	// URL is the address of a server that speaks HTTP, and Headers go with every request.
	URL     string            `json:"url" toml:"url"`
	Headers map[string]string `json:"headers" toml:"headers"`
	// ProtocolVersion is the version to begin with. Default: the newest; the server
	// may choose another.
	ProtocolVersion string `json:"protocol_version" toml:"protocol_version"`
}

// ErrServers: what should name servers can't be read at all.
var ErrServers = errors.New("mcp: bad servers")

// Parse reads servers from JSON: an array of servers, or an object of them by name. A
// server that can't be used is left out, with an error in bad; the others go on.
func Parse(text string) (good []Server, bad []error, err error) {
	var list []json.RawMessage
	names := map[int]string{}
	if json.Unmarshal([]byte(text), &list) != nil {
		var named map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &named); err != nil {
			return nil, nil, fmt.Errorf("%w: neither a JSON array nor an object of servers: %w", ErrServers, err)
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			names[len(list)] = name
			list = append(list, named[name])
		}
	}
	if len(list) > MaxServers {
		return nil, nil, fmt.Errorf("%w: %d of them, at most %d", ErrServers, len(list), MaxServers)
	}
	for i, raw := range list {
		var s Server
		if err := json.Unmarshal(raw, &s); err != nil {
			bad = append(bad, fmt.Errorf("mcp: server %d: %w", i+1, err))
			continue
		}
		if name, ok := names[i]; ok {
			s.Name = name
		}
		if err := s.check(good); err != nil {
			bad = append(bad, fmt.Errorf("mcp: server %d (%s): %w", i+1, s.Name, err))
			continue
		}
		good = append(good, s)
	}
	return good, bad, nil
}

// fromEnv begins a value of a table that stands in a variable of the bridge.
const fromEnv = "env:"

// Key is the table of a settings file that ParseTables reads.
const Key = "mcp"

// ParseTables reads the servers of a settings file: [mcp.NAME] tables. In env and headers
// a value "env:NAME" is that of a variable, which getenv reads: where it is not set the
// server is left out, with an error in bad. Any other fault is an error.
func ParseTables(written []byte, getenv func(string) string) (servers []Server, bad []error, err error) {
	var file struct {
		MCP map[string]any `toml:"mcp"`
	}
	if err := toml.Unmarshal(written, &file); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrServers, err)
	}
	for _, name := range slices.Sorted(maps.Keys(file.MCP)) {
		s, err := parseTable(name, file.MCP[name])
		if err == nil {
			err = s.check(servers)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s.%s: %w", ErrServers, Key, name, err)
		}
		if err := s.fill(getenv); err != nil {
			bad = append(bad, fmt.Errorf("mcp: %s.%s: %w", Key, name, err))
			continue
		}
		servers = append(servers, s)
	}
	if len(servers) > MaxServers {
		return nil, nil, fmt.Errorf("%w: %d of them, at most %d", ErrServers, len(servers), MaxServers)
	}
	return servers, bad, nil
}

func parseTable(name string, table any) (Server, error) {
	text, err := toml.Marshal(table)
	if err != nil {
		return Server{}, err
	}
	var s Server
	if _, ok := table.(map[string]any); !ok {
		return s, errors.New("is not a table")
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&s); err != nil {
		if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			return s, fmt.Errorf("unknown key %q", strings.Join(unknown.Errors[0].Key(), "."))
		}
		return s, err
	}
	s.Name = name
	return s, nil
}

// fill puts the values of variables in the place of their names.
func (s Server) fill(getenv func(string) string) error {
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for key, value := range values {
			from, ok := strings.CutPrefix(value, fromEnv)
			if !ok {
				continue
			}
			if values[key] = getenv(from); values[key] == "" {
				return fmt.Errorf("%s: the variable %s is not set", key, from)
			}
		}
	}
	return s.Check()
}

// secrets are the values of the server that are secret, by their names.
func (s Server) secrets() map[string]string {
	out := map[string]string{}
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for name, value := range values {
			if secret.Likely(name, value) {
				out[name] = value
			}
		}
	}
	for i, arg := range s.Args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if value == "" && i > 0 && strings.HasPrefix(s.Args[i-1], "-") {
			name, value = strings.TrimLeft(s.Args[i-1], "-"), arg
		}
		if secret.Certain(name, value) {
			out[name] = value
		}
	}
	if secret.Certain("", s.URL) {
		out["url"] = s.URL
	}
	return out
}

// Check returns an error for a server that can't be used.
func (s Server) Check() error { return s.check(nil) }

func (s Server) check(others []Server) error {
	switch {
	case !settings.IsToolName(s.Name) || strings.Contains(s.Name, ":") || len(s.Name) > MaxServerName:
		return fmt.Errorf("the name must be 1 to %d letters, digits or _ . - /", MaxServerName)
	case slices.ContainsFunc(others, func(o Server) bool { return o.Name == s.Name }):
		return errors.New("the name is given twice")
	case (s.Command == "") == (s.URL == ""):
		return errors.New("give exactly one of command and url")
	case s.ProtocolVersion != "" && !slices.Contains(versions, s.ProtocolVersion):
		return fmt.Errorf("protocol_version is not one of %s", strings.Join(versions, ", "))
	case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Cwd != ""):
		return errors.New("args, env and cwd are for a command")
	case s.URL == "" && len(s.Headers) > 0:
		return errors.New("headers are for a url")
	}
	if err := s.checkTexts(); err != nil || s.URL == "" {
		return err
	}
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the url scheme is not http or https")
	} else if u.User != nil {
		return errors.New("the url has a user or password: give a header")
	}
	return nil
}

// checkTexts checks what no program, and no request, could be given.
func (s Server) checkTexts() error {
	if n := max(len(s.Args), len(s.Env), len(s.Headers)); n > MaxServerFields {
		return fmt.Errorf("%d args, variables or headers, at most %d", n, MaxServerFields)
	}
	all := append([]string{s.Command, s.Cwd, s.URL}, s.Args...)
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env: %q is no name of a variable", name)
		}
		all = append(all, name, value)
	}
	for name, value := range s.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("headers: %q is no header", name)
		}
		all = append(all, name, value)
	}
	size := 0
	for _, text := range all {
		if size += len(text); strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return errors.New("a text contains NUL or is not UTF-8")
		}
	}
	if size > MaxServerBytes {
		return fmt.Errorf("it is described by %d bytes, at most %d", size, MaxServerBytes)
	}
	return nil
}

// versions are the protocol versions that a server may be asked for.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
