package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/server"
)

// Config is every setting of the process. A flag is stronger than the
// environment (LOOM_BRIDGE_ and the flag's name in capitals), which is stronger
// than the TOML file, which is stronger than the default. The tags are the
// names of the flags and of the keys in the file.
type Config struct {
	// Addr is where gRPC is served: host:port, or unix:/path. An empty host is
	// 127.0.0.1. Default 127.0.0.1:50051.
	Addr string `koanf:"addr"`
	// AddrFile gets the address served, once it is; for port 0. Default none.
	AddrFile string `koanf:"addr-file"`
	// DataDir holds the store. Default ./.loom/store.
	DataDir string `koanf:"data-dir"`
	// Workspace is the directory the tools work in. Default the current one.
	Workspace string `koanf:"workspace"`
	// Durability is what an acknowledged write survives: sync (power loss), wal
	// (the death of the process), none. Default sync.
	Durability string `koanf:"durability"`
	// Credentials is the file of callers. Default none: authentication is off.
	Credentials string `koanf:"credentials"`
	// TLSCert and TLSKey are PEM files. Default none: plain text.
	TLSCert string `koanf:"tls-cert"`
	TLSKey  string `koanf:"tls-key"`
	// TLSClientCA is a PEM file of authorities; with it every client must show
	// a certificate. Default none.
	TLSClientCA string `koanf:"tls-client-ca"`
	// TrustNetwork serves other machines although authentication is off. Default
	// false.
	TrustNetwork bool `koanf:"trust-network"`
	// RegistrationIdle is how long an agent's registration outlives its last
	// stream. Default 10 min.
	RegistrationIdle time.Duration `koanf:"registration-idle"`
	// Models is a TOML file laid over the built-in table of models. Default none.
	Models string `koanf:"models"`
	// Rules is a TOML file laid over the built-in rules by which the calls of tools
	// are kept. Default none.
	Rules string `koanf:"rules"`
	// HistoryPolicy is how histories are compacted where neither the session nor
	// the call says: ledger, append_only or preset. Default ledger, or preset when
	// HistoryPreset is given.
	HistoryPolicy string `koanf:"history-policy"`
	// HistoryPreset is the preset of fixed rules for that. Default none.
	HistoryPreset string `koanf:"history-preset"`
	// Reduction is how the results of calls are kept and shortened.
	Reduction `koanf:",squash"`
	// Compaction is what presets do with older steps.
	Compaction `koanf:",squash"`
	// Memory is how long-term memory searches.
	Memory `koanf:",squash"`
	// Tiers is how much the tiers of tasks hold.
	Tiers `koanf:",squash"`
	// Sharing is what tenants and agents share.
	Sharing `koanf:",squash"`
	// Embedder makes vectors for long-term memory.
	Embedder `koanf:",squash"`
	// LoomAddr serves the loom.v1 API, whose clients know no credentials, apart
	// from the rest while authentication is on: a loopback host:port, or
	// unix:/path. Default none: with authentication on, loom.v1 is not served;
	// with it off, it is served on Addr.
	LoomAddr string `koanf:"loom-addr"`
	// LoomTenant is whose data LoomAddr serves. Required with it.
	LoomTenant string `koanf:"loom-tenant"`
	// LoomReplay is the oldest event that a loom.v1 agent gets replayed after its
	// stream broke; 0 replays none. Default 60 s.
	LoomReplay time.Duration `koanf:"loom-replay"`
	// EventsMaxAge is how long durable events are kept; 0 for ever. Default 7
	// days.
	EventsMaxAge time.Duration `koanf:"events-max-age"`
	// EventsMaxTopicBytes and EventsMaxBytes bound what is kept of a topic and
	// of all, of which each tenant has a share; the oldest events go first. Default
	// 64 MiB and 1 GiB.
	EventsMaxTopicBytes int `koanf:"events-max-topic-bytes"`
	EventsMaxBytes      int `koanf:"events-max-bytes"`
	// EventsSweepInterval is the time between two deletions of what is too old or too
	// much. Default 1 min.
	EventsSweepInterval time.Duration `koanf:"events-sweep-interval"`
	// BlobTTL changes how long offloaded results stay before they expire, such as
	// "shell=1h,note=forever". Default: shell 30 min, search and page 6 h, note 7
	// days, report for ever, all others 24 h.
	BlobTTL string `koanf:"blob-ttl"`
	// BlobGCInterval is the time between two collections of expired results; 0
	// collects only when asked to. Default 10 min.
	BlobGCInterval time.Duration `koanf:"blob-gc-interval"`
	// BlobGCBytes collects an agent's expired results as soon as its results take
	// more; 0 never. Default 100 MiB.
	BlobGCBytes int `koanf:"blob-gc-bytes"`
	// BlobMaxBytes is what one agent's results may take; 0 for no bound. Default
	// 10 GiB.
	BlobMaxBytes int `koanf:"blob-max-bytes"`
	// MetricsAddr is where Prometheus finds /metrics. Default none: off.
	MetricsAddr string `koanf:"metrics-addr"`
	// LogLevel is debug, info, warn, error or off. Default info.
	LogLevel string `koanf:"log-level"`
	// LogFormat is text or json. Default text.
	LogFormat string `koanf:"log-format"`
	// LogSlow is the duration from which a call is logged. Default 1 s.
	LogSlow time.Duration `koanf:"log-slow"`

	// The limits; see server.Limits.
	MaxReceiveBytes         int           `koanf:"max-receive-bytes"`
	MaxSendBytes            int           `koanf:"max-send-bytes"`
	MaxHeaderBytes          int           `koanf:"max-header-bytes"`
	MaxCalls                int           `koanf:"max-calls"`
	MaxStreams              int           `koanf:"max-streams"`
	MaxStreamsPerConnection int           `koanf:"max-streams-per-connection"`
	MaxConnections          int           `koanf:"max-connections"`
	ConnectionTimeout       time.Duration `koanf:"connection-timeout"`
	IdleTimeout             time.Duration `koanf:"idle-timeout"`
	KeepaliveTime           time.Duration `koanf:"keepalive-time"`
	KeepaliveTimeout        time.Duration `koanf:"keepalive-timeout"`
	KeepaliveMinTime        time.Duration `koanf:"keepalive-min-time"`
	StallTimeout            time.Duration `koanf:"stall-timeout"`
	DrainTimeout            time.Duration `koanf:"drain-timeout"`
}

const (
	formatText = "text"
	formatJSON = "json"

	// levelOff is above every level that is logged.
	levelOff = slog.Level(100)
)

// DefaultConfig returns the default of every setting.
func DefaultConfig() Config {
	l := server.DefaultLimits()
	return Config{
		Addr: "127.0.0.1:50051", DataDir: "./.loom/store", Workspace: ".",
		Durability: rockskv.Sync.String(), LogLevel: "info", LogFormat: formatText, LogSlow: server.DefaultSlowCall,
		MaxReceiveBytes: l.MaxReceiveBytes, MaxSendBytes: l.MaxSendBytes, MaxHeaderBytes: l.MaxHeaderBytes,
		MaxCalls: l.MaxCalls, MaxStreams: l.MaxStreams,
		MaxStreamsPerConnection: l.MaxStreamsPerConnection, MaxConnections: l.MaxConnections,
		ConnectionTimeout: l.ConnectionTimeout, IdleTimeout: l.IdleTimeout, KeepaliveTime: l.KeepaliveTime,
		KeepaliveTimeout: l.KeepaliveTimeout, KeepaliveMinTime: l.KeepaliveMinTime,
		StallTimeout: l.StallTimeout, DrainTimeout: l.DrainTimeout,
		LoomReplay: time.Minute, RegistrationIdle: agents.DefaultIdleRegistration, EventsMaxAge: 7 * 24 * time.Hour,
		EventsMaxTopicBytes: 64 << 20, EventsMaxBytes: 1 << 30, EventsSweepInterval: events.DefaultSweepEvery,
		Reduction:      defaultReduction(),
		Memory:         defaultMemory(),
		Tiers:          defaultTiers(),
		Sharing:        defaultSharing(),
		Embedder:       defaultEmbedder(),
		BlobGCInterval: blob.DefaultCollectEvery, BlobGCBytes: blob.DefaultCollectBytes, BlobMaxBytes: blob.DefaultMaxOwnerBytes,
	}
}

// ConfigError says which setting can't be used.
type ConfigError struct {
	Field string
	Value any
	Cause string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("--%s (%s) %q: %s", e.Field, envName(e.Field), fmt.Sprint(e.Value), e.Cause)
}

// Validate returns a *ConfigError for the first setting that can't be used.
func (c Config) Validate() error {
	for _, check := range []func() error{
		c.checkAddresses, c.checkFiles, c.checkLog, c.checkLimits, c.checkSharing,
		c.checkBlobs, c.checkHistory, c.checkReduction, c.checkCompaction, c.checkMemory, c.checkTiers, c.checkEmbedder,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkAddresses() error {
	if _, _, err := splitAddr(c.Addr); err != nil {
		return &ConfigError{"addr", c.Addr, err.Error()}
	}
	if err := c.checkLoom(); err != nil {
		return err
	}
	if c.MetricsAddr == "" {
		return nil
	}
	network, _, err := splitAddr(c.MetricsAddr)
	switch {
	case err != nil:
		return &ConfigError{"metrics-addr", c.MetricsAddr, err.Error()}
	case network == "unix":
		return &ConfigError{"metrics-addr", c.MetricsAddr, "give host:port"}
	}
	return nil
}

// checkLoom checks the address of loom.v1 alone.
func (c Config) checkLoom() error {
	if c.LoomAddr == "" && c.LoomTenant != "" {
		return &ConfigError{"loom-tenant", c.LoomTenant, "means nothing without --loom-addr"}
	}
	if c.LoomAddr == "" {
		return nil
	}
	if _, _, err := splitAddr(c.LoomAddr); err != nil {
		return &ConfigError{"loom-addr", c.LoomAddr, err.Error()}
	}
	if c.Credentials == "" {
		return &ConfigError{"loom-addr", c.LoomAddr, "needs --credentials; without them loom.v1 is served on --addr"}
	}
	if !server.ValidTenant(c.LoomTenant) {
		return &ConfigError{"loom-tenant", c.LoomTenant, "is needed with --loom-addr: the tenant whose data is served there"}
	}
	return nil
}

func (c Config) checkFiles() error {
	switch {
	case c.DataDir == "":
		return &ConfigError{"data-dir", c.DataDir, "a directory is needed"}
	case c.Workspace == "":
		return &ConfigError{"workspace", c.Workspace, "a directory is needed"}
	case c.TLSKey == "" && c.TLSCert != "":
		return &ConfigError{"tls-key", c.TLSKey, "is needed with --tls-cert"}
	case c.TLSCert == "" && c.TLSKey != "":
		return &ConfigError{"tls-cert", c.TLSCert, "is needed with --tls-key"}
	case c.TLSClientCA != "" && c.TLSCert == "":
		return &ConfigError{"tls-client-ca", c.TLSClientCA, "needs --tls-cert and --tls-key"}
	}
	if _, err := rockskv.ParseDurability(c.Durability); err != nil {
		return &ConfigError{"durability", c.Durability, "is not sync, wal or none"}
	}
	return nil
}

// parseLevel knows the names of log levels; those of RUST_LOG are among them.
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

func (c Config) checkLog() error {
	if _, ok := parseLevel(c.LogLevel); !ok {
		return &ConfigError{keyLogLevel, c.LogLevel, "is not debug, info, warn, error or off"}
	}
	if c.LogFormat != formatText && c.LogFormat != formatJSON {
		return &ConfigError{"log-format", c.LogFormat, "is not text or json"}
	}
	return nil
}

func (c Config) checkLimits() error {
	for _, number := range []struct {
		field string
		value int
	}{
		{"max-receive-bytes", c.MaxReceiveBytes},
		{"max-send-bytes", c.MaxSendBytes},
		{"max-header-bytes", c.MaxHeaderBytes},
		{"max-calls", c.MaxCalls},
		{"max-streams", c.MaxStreams},
		{"max-streams-per-connection", c.MaxStreamsPerConnection},
		{"max-connections", c.MaxConnections},
		{"events-max-topic-bytes", c.EventsMaxTopicBytes},
	} {
		if number.value <= 0 || number.value > maxLimit {
			return &ConfigError{number.field, number.value, fmt.Sprintf("must be from 1 to %d", maxLimit)}
		}
	}
	if c.EventsMaxBytes <= 0 {
		return &ConfigError{"events-max-bytes", c.EventsMaxBytes, "must be more than zero"}
	}
	return c.checkTimes()
}

// maxLimit keeps every limit within the 32 bits of the wire.
const maxLimit = 1 << 30

// maxReplay bounds LoomReplay: an agent must not run again what was asked long
// ago.
const maxReplay = time.Hour

func (c Config) checkTimes() error {
	for _, span := range []struct {
		field string
		value time.Duration
	}{
		{"log-slow", c.LogSlow},
		{"connection-timeout", c.ConnectionTimeout},
		{"idle-timeout", c.IdleTimeout},
		{"keepalive-time", c.KeepaliveTime},
		{"keepalive-timeout", c.KeepaliveTimeout},
		{"keepalive-min-time", c.KeepaliveMinTime},
		{"stall-timeout", c.StallTimeout},
		{"drain-timeout", c.DrainTimeout},
		{"registration-idle", c.RegistrationIdle},
		{"events-sweep-interval", c.EventsSweepInterval},
	} {
		if span.value <= 0 {
			return &ConfigError{span.field, span.value, "must be more than zero, such as 10s"}
		}
	}
	switch {
	case c.LoomReplay < 0 || c.LoomReplay > maxReplay:
		return &ConfigError{"loom-replay", c.LoomReplay, fmt.Sprintf("must be from 0 to %v", maxReplay)}
	case c.EventsMaxAge < 0:
		return &ConfigError{"events-max-age", c.EventsMaxAge, "must not be negative; 0 keeps events for ever"}
	}
	return nil
}

// limits are the server's limits as configured.
func (c Config) limits() server.Limits {
	return server.Limits{
		MaxReceiveBytes: c.MaxReceiveBytes, MaxSendBytes: c.MaxSendBytes, MaxHeaderBytes: c.MaxHeaderBytes,
		MaxCalls: c.MaxCalls, MaxStreams: c.MaxStreams,
		MaxStreamsPerConnection: c.MaxStreamsPerConnection, MaxConnections: c.MaxConnections,
		ConnectionTimeout: c.ConnectionTimeout, IdleTimeout: c.IdleTimeout, KeepaliveTime: c.KeepaliveTime,
		KeepaliveTimeout: c.KeepaliveTimeout, KeepaliveMinTime: c.KeepaliveMinTime,
		StallTimeout: c.StallTimeout, DrainTimeout: c.DrainTimeout,
		MaxWaitingCalls: c.MaxWaitingCalls, MaxSearches: c.MaxSearches, MaxRequestBytes: c.MaxRequestBytes,
		ContendedCalls: c.ContendedCalls, ContendedEventBytes: c.ContendedEventBytes,
	}
}

// retention is how long events are kept, as configured.
func (c Config) retention() events.Retention {
	r := events.Retention{MaxAge: c.EventsMaxAge, MaxTopicBytes: int64(c.EventsMaxTopicBytes), MaxBytes: int64(c.EventsMaxBytes), Every: c.EventsSweepInterval}
	if c.EventsMaxAge == 0 {
		r.MaxAge = -1 // for ever; there, zero is the default
	}
	return r
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
