package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

const (
	// envPrefix begins the environment name of every setting.
	envPrefix = "LOOM_BRIDGE_"
	// rustLog is the log level of loom.v1 cores; LOOM_BRIDGE_LOG_LEVEL is
	// stronger.
	rustLog = "RUST_LOG"

	keyConfig   = "config"
	keyLogLevel = "log-level"
)

// configFlags returns a flag for every setting, with its default.
func configFlags() *pflag.FlagSet {
	d := DefaultConfig()
	f := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	f.SortFlags = false
	f.String(keyConfig, "", "TOML `file` of settings, named like these flags")
	f.String("addr", d.Addr, "serve gRPC on `host:port` or unix:/path; no host means 127.0.0.1, port 0 a free one")
	f.String("addr-file", d.AddrFile, "write the served address to this `file`")
	f.String("data-dir", d.DataDir, "`directory` of the store; no tool may touch it")
	f.String("workspace", d.Workspace, "`directory` the tools work in; with credentials each tenant has a folder in it")
	f.String("durability", d.Durability, "what an acknowledged write survives: sync (power loss), wal (the end of the process), none")
	f.String("credentials", d.Credentials, "TOML `file` of callers, see above; without it authentication is off")
	f.Bool("trust-network", d.TrustNetwork, "serve other machines without credentials: who reaches the address can do everything")
	f.String("tls-cert", d.TLSCert, "PEM `file` of the server's certificate")
	f.String("tls-key", d.TLSKey, "PEM `file` of its key")
	f.String("tls-client-ca", d.TLSClientCA, "PEM `file` of authorities; every client must then show a certificate")
	f.String("models", d.Models, "TOML `file` of models (window, counter, prices), laid over the built-in ones")
	f.String("rules", d.Rules, "TOML `file` of rules by which the calls of tools are kept, laid over the built-in ones")
	f.String("history-policy", d.HistoryPolicy, "how histories are compacted unless a session or a call says: ledger (default), append_only, preset")
	f.String("history-preset", d.HistoryPreset, "`name` of the preset for that: design, reduction, chat, research, code, debug")
	reductionFlags(f, d.Reduction)
	compactionFlags(f, d.Compaction)
	memoryFlags(f, d.Memory)
	tierFlags(f, d.Tiers)
	embedderFlags(f, d.Embedder)
	f.String("loom-addr", d.LoomAddr, "with credentials, serve loom.v1, whose clients have none, on this loopback `host:port` or unix:/path")
	f.String("loom-tenant", d.LoomTenant, "`tenant` whose data --loom-addr serves")
	f.Duration("loom-replay", d.LoomReplay, "oldest event replayed to a loom.v1 agent after its stream broke; 0 replays none")
	f.Duration("registration-idle", d.RegistrationIdle, "free an agent's registration this long after its last stream")
	f.Duration("events-max-age", d.EventsMaxAge, "keep durable events this long; 0 keeps them for ever")
	f.Int("events-max-topic-bytes", d.EventsMaxTopicBytes, "keep at most this much of one topic's events")
	f.Int("events-max-bytes", d.EventsMaxBytes, "keep at most this much of all topics' events; tenants share it")
	f.Duration("events-sweep-interval", d.EventsSweepInterval, "time between two deletions of events that are too old or too many")
	f.String("blob-ttl", d.BlobTTL, "how long offloaded results stay, as `kind=time` or kind=forever, with commas between")
	f.Duration("blob-gc-interval", d.BlobGCInterval, "time between two collections of expired results; 0 collects only when asked to")
	f.Int("blob-gc-bytes", d.BlobGCBytes, "collect an agent's expired results as soon as its results take more; 0 never")
	f.Int("blob-max-bytes", d.BlobMaxBytes, "most that one agent's results may take; 0 for no bound")
	f.String("metrics-addr", d.MetricsAddr, "serve Prometheus /metrics on `host:port`; no host means 127.0.0.1")
	f.String(keyLogLevel, d.LogLevel, "debug, info, warn, error or off")
	f.String("log-format", d.LogFormat, "text or json")
	f.Duration("log-slow", d.LogSlow, "log calls that take longer")
	f.Int("max-receive-bytes", d.MaxReceiveBytes, "largest request message")
	f.Int("max-send-bytes", d.MaxSendBytes, "largest response message")
	f.Int("max-header-bytes", d.MaxHeaderBytes, "largest metadata of a call")
	f.Int("max-calls", d.MaxCalls, "calls that run at once, those aside that wait for an agent; more wait")
	f.Int("max-streams", d.MaxStreams, "open streams; more are refused")
	sharingFlags(f, d.Sharing)
	f.Int("max-streams-per-connection", d.MaxStreamsPerConnection, "calls and streams on one connection; more wait")
	f.Int("max-connections", d.MaxConnections, "open connections; more wait")
	f.Duration("connection-timeout", d.ConnectionTimeout, "longest handshake, and longest wait for the hello of an agent")
	f.Duration("idle-timeout", d.IdleTimeout, "close a connection that makes no call")
	f.Duration("keepalive-time", d.KeepaliveTime, "silence after which a connection is pinged")
	f.Duration("keepalive-timeout", d.KeepaliveTimeout, "longest wait for the answer to a ping")
	f.Duration("keepalive-min-time", d.KeepaliveMinTime, "shortest interval at which clients may ping")
	f.Duration("stall-timeout", d.StallTimeout, "longest wait for the reader of a stream")
	f.Duration("drain-timeout", d.DrainTimeout, "longest wait for calls in flight at shutdown")
	return f
}

// loadConfig merges the layers and checks the result.
func loadConfig(flags *pflag.FlagSet, getenv func(string) string) (Config, error) {
	k := koanf.New(".")
	known := DefaultConfig().keys()
	path, _ := flags.GetString(keyConfig)
	if path = cmp.Or(path, getenv(envName(keyConfig))); path != "" {
		if err := loadFile(k, path, known); err != nil {
			return Config{}, err
		}
	}
	if err := k.Load(confmap.Provider(environment(known, getenv), "."), nil); err != nil {
		return Config{}, fmt.Errorf("environment: %w", err)
	}
	if err := k.Load(posflag.Provider(flags, ".", k), nil); err != nil {
		return Config{}, fmt.Errorf("flags: %w", err)
	}
	if err := malformed(k, known); err != nil {
		return Config{}, err
	}
	c := DefaultConfig()
	if err := k.Unmarshal("", &c); err != nil {
		return Config{}, fmt.Errorf("settings: %w", err)
	}
	return c, c.Validate()
}

// malformed says which setting of the file or the environment is no number or
// no time; nil when all are.
func malformed(k *koanf.Koanf, known []string) error {
	flags := configFlags()
	for _, key := range known {
		value := k.Get(key)
		flag := flags.Lookup(key)
		if value == nil || flag.Value.Set(fmt.Sprint(value)) == nil {
			continue
		}
		cause := "is not a whole number"
		switch flag.Value.Type() {
		case "duration":
			cause = "is not a time with a unit, such as 10s"
		case "bool":
			cause = "is not true or false"
		}
		return &ConfigError{key, value, cause}
	}
	return nil
}

func loadFile(k *koanf.Koanf, path string, known []string) error {
	parsed := koanf.New(".")
	if err := parsed.Load(file.Provider(path), toml.Parser()); err != nil {
		return fmt.Errorf("settings file %s: %w", path, err)
	}
	for _, key := range parsed.Keys() {
		if !slices.Contains(known, key) {
			return fmt.Errorf("settings file %s: unknown key %q, nearest is %q", path, key, nearest(key, known))
		}
	}
	return k.Merge(parsed)
}

func environment(known []string, getenv func(string) string) map[string]any {
	values := map[string]any{}
	if level := strings.ToLower(getenv(rustLog)); level != "" {
		if _, plain := parseLevel(level); plain {
			values[keyLogLevel] = level
		}
	}
	for _, key := range known {
		if value := getenv(envName(key)); value != "" {
			values[key] = value
		}
	}
	return values
}

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// keys are the names of all settings but the file's own.
func (Config) keys() []string {
	var keys []string
	configFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != keyConfig {
			keys = append(keys, f.Name)
		}
	})
	return keys
}

// nearest returns the known key that takes the fewest edits to reach.
func nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return cmp.Compare(tools.Distance(key, a), tools.Distance(key, b)) })
}
