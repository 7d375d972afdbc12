package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/logs"
	"github.com/loom-bridge/loom-bridge/server/console"
	"github.com/loom-bridge/loom-bridge/server/mcp"
)

// started is a server that begins to serve, for its log.
type started struct {
	config      Config
	faces       faces
	http        net.Listener // nil for none
	metrics     string       // address; empty for none
	embedder    embed.Embedder
	credentials *auth.Credentials
	encrypted   bool
	sandbox     sandbox.Confinement
}

// fact is one line about the server.
type fact struct{ key, value string }

// facts are what somebody wants to know who has just started the server.
func (s started) facts() []fact {
	return []fact{
		{"console", s.pages()},
		{"version", buildVersion()},
		{"workspace", absolute(s.config.Workspace)},
		{"store", s.store()},
		{"durability", s.durability()},
		{"grpc", addressOf(s.faces[0].listener)},
		{"http", s.overHTTP()},
		{"loom_v1", s.loom()},
		{"mcp", s.hosts()},
		{"metrics", s.metricsPlace()},
		{"sandbox", sandboxLine(s.sandbox)},
		{"embedder", s.config.embedderLine(s.embedder)},
		{"credentials", s.callers()},
		{"encryption", s.encryption()},
	}
}

// hosts is where hosts of the Model Context Protocol are served.
func (s started) hosts() string {
	switch {
	case s.config.MCPAddr != "":
		return s.url(s.faces[len(s.faces)-1].listener) + mcp.Path
	case s.http != nil:
		return s.url(s.http) + mcp.Path
	}
	return "off"
}

// pages is where a person looks first.
func (s started) pages() string {
	if s.http == nil {
		return "off"
	}
	return s.url(s.http) + console.Path
}

// overHTTP is where all that is not gRPC is served.
func (s started) overHTTP() string {
	if s.http == nil {
		return "off"
	}
	return s.url(s.http)
}

func (s started) url(listener net.Listener) string {
	if s.encrypted {
		return "https://" + addressOf(listener)
	}
	return "http://" + addressOf(listener)
}

// log writes the facts: as one record where logs are JSON, otherwise as a block
// for people.
func (s started) log(out io.Writer, logger *slog.Logger) {
	address := s.faces[0].listener.Addr()
	switch {
	case local(address):
	case s.credentials == nil:
		logger.Warn("authentication is off: any client that reaches the address can do everything", "address", address.String())
	case !s.encrypted:
		logger.Warn("bearer tokens travel in plain text; give --tls-cert and --tls-key")
	}
	if !logger.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	if s.config.LogFormat == logs.JSON {
		var attrs []slog.Attr
		for _, f := range s.facts() {
			attrs = append(attrs, slog.String(f.key, f.value))
		}
		logger.LogAttrs(context.Background(), slog.LevelInfo, "serving", attrs...)
		return
	}
	var block strings.Builder
	block.WriteString("loom-bridge-server is serving\n")
	for _, f := range s.facts() {
		fmt.Fprintf(&block, "  %-11s  %s\n", f.key, f.value)
	}
	_, _ = io.WriteString(out, block.String()) // a log that can't be written is no reason to stop
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

func (s started) store() string {
	if s.config.Store.Far() {
		return s.config.Store.String() + "; on this machine " + absolute(s.config.DataDir)
	}
	if s.config.Ephemeral {
		return absolute(s.config.DataDir) + " (ephemeral: removed when the server ends)"
	}
	return absolute(s.config.DataDir)
}

func (s started) durability() string {
	if s.config.Store.Far() && s.config.Durability != "sync" {
		return s.config.Durability + ": acknowledged writes survive the end of this process, not of PostgreSQL"
	}
	return s.config.Durability + map[string]string{
		"sync": ": acknowledged writes survive a power loss",
		"wal":  ": acknowledged writes survive the end of the process, not of the machine",
		"none": ": acknowledged writes may be lost with the process",
	}[s.config.Durability]
}

func (s started) loom() string {
	switch {
	case s.credentials != nil && s.config.LoomAddr != "":
		return addressOf(s.faces[1].listener) + ", for the tenant " + s.config.LoomTenant
	case s.credentials != nil:
		return "not served: its clients know no credentials (--loom-addr serves them apart)"
	}
	return "at the same address"
}

func (s started) metricsPlace() string {
	if s.metrics == "" {
		return "none (--metrics-addr serves them)"
	}
	if s.config.MetricsAddr == "" {
		return s.url(s.http) + "/metrics"
	}
	return "http://" + s.metrics + "/metrics"
}

func (s started) callers() string {
	if s.credentials == nil {
		return "none: authentication is off, everybody who reaches the address is the tenant " + auth.DefaultTenant
	}
	return fmt.Sprintf("%d callers in %s", s.credentials.Len(), absolute(s.config.Credentials))
}

func (s started) encryption() string {
	switch {
	case !s.encrypted:
		return "none (--tls-cert and --tls-key)"
	case s.config.TLSClientCA != "":
		return "TLS, clients show certificates"
	}
	return "TLS"
}
