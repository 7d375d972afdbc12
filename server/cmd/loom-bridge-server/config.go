package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

// Config is the value of every setting. The table in settings.go says of each what
// it does, its default and its bounds.
type Config struct {
	File, Addr, AddrFile, DataDir, Workspace, Durability string
	Ephemeral                                            bool
	// Store is where the store is; in DataDir unless it says more.
	Store stores.Place
	// BridgeName and BridgeAddr are the name and the address of this server among the
	// servers on one store.
	BridgeName, BridgeAddr string
	// WorkspaceShared says that they all have one workspace folder.
	WorkspaceShared bool
	// Mesh says how this server reaches the others.
	Mesh cluster.Settings
	// StoreWait is how long to wait for another process to close the store, for servers
	// that follow each other. No setting; 0 for a single server.
	StoreWait time.Duration

	Credentials, TLSCert, TLSKey, TLSClientCA string
	TrustNetwork                              bool
	LoomAddr, LoomTenant                      string
	HTTPAddr, MCPAddr, MCPServers             string
	// Dashboard is what LOOM_DASHBOARD asks for.
	Dashboard      loomDashboard
	ProxyUpstreams []string
	// ProgramPath is PATH, in which programs of MCP servers are looked for last.
	ProgramPath string
	MCPHosts    []string

	MetricsAddr, LogLevel, LogFormat string
	// OTel exports traces.
	OTel bool

	MemoryLanguage string
	VectorWeight   float64
	Duplicates     string
	MemoryLimit    int
	ArchiveLimit   int
	CountAccesses  bool
	HoldOrigins    []record.Origin
	MaxVersions    int
	// RedactNames are the names of patterns and groups; Redact is built from them and from
	// the settings file's own patterns. Nil: nothing is redacted.
	RedactNames   []string
	Redact        *redact.Redactor
	Embedder      embed.Options
	EmbedderUse   string // auto, builtin or off; empty: that of Embedder
	ModelFile     string // of the builtin embedder; no setting: where builtin.Find looks
	EmbedderHosts string // where auto looks; no setting: nearby.Hosts
	// KnowledgeEndpoint is a URL; empty for none.
	KnowledgeEndpoint string

	Models, HistoryPolicy, HistoryPreset string
	Prompts
	Sessions
	// OwnWorkspace gives every agent its own folder in the workspace, ChildGrace is how long
	// a child may be away whose stream has ended: no setting, 0 for the default.
	OwnWorkspace bool
	ChildGrace   time.Duration
	Reduction
	Blobs blob.Options
	// MaxResultBytes bounds one result that is streamed in.
	MaxResultBytes int64

	Retention events.Retention

	Scrub   Scrub
	Backups Backups
	// Hosted are the servers of the Model Context Protocol in tables of the settings file,
	// NotHosted is why others are left out.
	Hosted    []mcp.Server
	NotHosted []error
	// Policies are the profiles and bindings; they stand in the settings file alone.
	Policies *policy.Set
	// ApprovalTimeout is how long a call waits for a person.
	ApprovalTimeout time.Duration
	// AuditRetention is how long the records of calls are kept; negative: for ever.
	AuditRetention time.Duration
	// RetainRecords and RetainSessions are how long those are kept in which nothing
	// happens; 0: for ever.
	RetainRecords, RetainSessions time.Duration
	Sharing                       Sharing
	Sandbox                       Sandbox
	Web                           Web
	Limits                        server.Limits

	// sources say of settings by name where they come from, but of defaults.
	sources map[string]source
}

// Sessions is how long short-term memory of sessions lasts in which nothing happens.
type Sessions struct {
	SessionIdleTTL, SessionEndAfter time.Duration
}

// Sharing holds the sizes of the resources that tenants and agents share, in addition to
// server.Limits.
type Sharing struct {
	// MaxTools bounds the tools that run in this process.
	MaxTools int
	// ToolLimits bound how often, and how many at once, tools are called.
	ToolLimits []throttle.Rule
	// MaxJobs bounds the programs that run in the background.
	MaxJobs int
	// MaxQueuedEventBytes bounds the volatile events that wait for readers. No setting: 0
	// for as much as Limits.MaxRequestBytes.
	MaxQueuedEventBytes int64
	// MaxStoreBytes is what all tenants together may store; each has a share. 0: as
	// much as there is room for on the disk.
	MaxStoreBytes int64
	// StoreCheckInterval is the time between two measurements of what tenants store. No
	// setting: 0 for the default.
	StoreCheckInterval time.Duration
}

// Sandbox is how programs that tools run are confined.
type Sandbox struct {
	// Setting is auto, require or off; Tier auto or the only one to use.
	Setting, Tier string
	// Read are places outside of the workspace that programs may read and run.
	Read []string
	// Allow are the names of programs that may be run.
	Allow []string
	// AllowOff lets profiles leave the sandbox.
	AllowOff bool
}

const (
	// levelOff is above every level that is logged.
	levelOff = slog.Level(100)
)

// ConfigError says which setting can't be used.
type ConfigError struct {
	Field string
	Value any
	Cause string
}

func (e *ConfigError) Error() string {
	name := "--" + e.Field
	if c := NewConfig(); slices.ContainsFunc(c.settings(), func(s setting) bool { return s.name == e.Field }) {
		name += " (" + envName(e.Field) + ")"
	}
	return fmt.Sprintf("%s %q: %s", name, fmt.Sprint(e.Value), e.Cause)
}

// Validate returns a *ConfigError for the first settings that do not go together,
// or with what they name. What one setting may be by itself was checked when it
// was read.
func (c Config) Validate() error {
	for _, check := range []func() error{c.checkStore, c.checkLoom, c.checkTLS, c.checkHistory, c.checkPrompts, c.checkEmbedder, c.checkWeb} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkLoom checks the address of loom.v1 alone.
func (c Config) checkLoom() error {
	switch {
	case c.LoomAddr == "" && c.LoomTenant != "":
		return &ConfigError{"loom-tenant", c.LoomTenant, "means nothing without --loom-addr"}
	case c.LoomAddr == "":
		return nil
	case c.Credentials == "":
		return &ConfigError{"loom-addr", c.LoomAddr, "needs --credentials; without them loom.v1 is served on --addr"}
	case !auth.ValidTenant(c.LoomTenant):
		return &ConfigError{"loom-tenant", c.LoomTenant, "is needed with --loom-addr: the tenant whose data is served there"}
	}
	return nil
}

func (c Config) checkTLS() error {
	switch {
	case c.TLSKey == "" && c.TLSCert != "":
		return &ConfigError{"tls-key", c.TLSKey, "is needed with --tls-cert"}
	case c.TLSCert == "" && c.TLSKey != "":
		return &ConfigError{"tls-cert", c.TLSCert, "is needed with --tls-key"}
	case c.TLSClientCA != "" && c.TLSCert == "":
		return &ConfigError{"tls-client-ca", c.TLSClientCA, "needs --tls-cert and --tls-key"}
	}
	return nil
}

// checkHistory checks that policy and preset go together.
func (c Config) checkHistory() error {
	bad, ok := errors.AsType[*invalid.Error](c.history().Check())
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
	if len(c.ToolNames) > 0 {
		own.Prompt = &settings.Prompt{Tools: &settings.Tools{Names: c.ToolNames}}
	}
	return own.Over(session.Config{Policy: session.PolicyLedger})
}

// checkEndpoint takes the URL of a knowledge base.
func checkEndpoint(address string) error {
	if _, err := recall.NewEndpoint(address); err != nil {
		return errors.New("is no URL of http or https")
	}
	return nil
}

// checkLevel takes the names of log levels.
func checkLevel(name string) error {
	if _, ok := parseLevel(name); !ok {
		return errors.New("is not debug, info, warn, error or off")
	}
	return nil
}

// parseLevel knows the names of log levels, including those of RUST_LOG.
func parseLevel(name string) (slog.Level, bool) {
	switch name {
	case "trace", "debug":
		return slog.LevelDebug, true
	case "info":
		return slog.LevelInfo, true
	case "warn":
		return slog.LevelWarn, true
	case "error":
		return slog.LevelError, true
	case "off":
		return levelOff, true
	}
	return slog.LevelInfo, false
}

// blobTTLs is how long blobs of some kinds stay, written as
// "shell=30m,note=forever".
func blobTTLs(to *map[string]time.Duration) field {
	return scalar[map[string]time.Duration]{to: to, name: "kind=duration", parse: parseTTLs, print: printTTLs}
}

// forever is how a time that never ends is written.
const forever = "forever"

func parseTTLs(text string) (map[string]time.Duration, error) {
	ttls := make(map[string]time.Duration)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		kind, value, _ := strings.Cut(part, "=")
		if kind = strings.TrimSpace(kind); !slices.Contains(blob.Categories(), kind) {
			return nil, fmt.Errorf("%q is not one of %s", kind, strings.Join(blob.Categories(), ", "))
		}
		if value = strings.TrimSpace(value); value == forever {
			ttls[kind] = -1
			continue
		}
		ttl, err := time.ParseDuration(value)
		if err != nil || ttl <= 0 {
			return nil, fmt.Errorf("%q is neither `%s` nor a time with a unit, such as 30m", value, forever)
		}
		ttls[kind] = ttl
	}
	return ttls, nil
}

func printTTLs(ttls map[string]time.Duration) string {
	var parts []string
	for kind, ttl := range ttls {
		value := shortSpan(ttl)
		if ttl < 0 {
			value = forever
		}
		parts = append(parts, kind+"="+value)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// checkAddr takes what splitAddr takes.
func checkAddr(addr string) error {
	_, _, err := splitAddr(addr)
	return err
}

// checkTCPAddr takes a host and a port.
func checkTCPAddr(addr string) error {
	network, _, err := splitAddr(addr)
	if err == nil && network == "unix" {
		return errors.New("give host:port")
	}
	return err
}

// splitAddr returns the network and address of a listening address. An empty
// host is the loopback: serving other machines is asked for by name.
func splitAddr(addr string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path = strings.TrimPrefix(path, "//"); path == "" {
			return "", "", errors.New("the path of the socket is missing")
		}
		return "unix", path, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", "", errors.New("give host:port, such as 127.0.0.1:50051, or unix:/path")
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", "", fmt.Errorf("%q is not a port", port)
	}
	return "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// languages returns the names of the languages that memory can be searched in.
func languages() []string {
	var names []string
	for _, l := range analysis.Languages() {
		names = append(names, l.String())
	}
	return names
}

// language returns the language of memory.
func (c Config) language() (analysis.Language, error) {
	return analysis.ParseLanguage(c.MemoryLanguage)
}
