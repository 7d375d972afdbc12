package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// MaxServers bounds the servers of one configuration.
const MaxServers = 64

// Server is one server: a program, or an address.
type Server struct {
	// Name stands in front of the names of its tools.
	Name string `json:"name"`
	// Command and Args are the program. Exactly one of Command and URL is set.
	Command string   `json:"command"`
	Args    []string `json:"args"`
	// Env are further variables of the program.
	Env map[string]string `json:"env"`
	// Cwd is where it starts, relative to the workspace. Default: the workspace.
	Cwd string `json:"cwd"`
	// URL is the address of a server that speaks HTTP, and Headers go with every request.
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	// ProtocolVersion is the version to begin with. Default: the newest; the server
	// may choose another.
	ProtocolVersion string `json:"protocol_version"`
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

func (s Server) check(others []Server) error {
	switch {
	case !settings.IsToolName(s.Name) || strings.Contains(s.Name, ":"):
		return errors.New("the name must be letters, digits or _ . - /")
	case slices.ContainsFunc(others, func(o Server) bool { return o.Name == s.Name }):
		return errors.New("the name is given twice")
	case (s.Command == "") == (s.URL == ""):
		return errors.New("give exactly one of command and url")
	case s.ProtocolVersion != "" && !slices.Contains(versions, s.ProtocolVersion):
		return fmt.Errorf("protocol_version is none of %s", strings.Join(versions, ", "))
	}
	if s.URL == "" {
		return nil
	}
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the url is none of http or https")
	}
	return nil
}

// versions are the protocol versions that a server may be asked for.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
