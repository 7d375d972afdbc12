package main

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/cluster"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/logs"
)

// setting is one row of the table of settings: all there is to say about it. Its
// flag, its name in the environment and in the file, its check and its line in the
// help are made from it.
type setting struct {
	// name is that of the flag and of the key in the file. In the environment it is
	// LOOM_BRIDGE_ and the name in capitals, with _ for -.
	name string
	// to is the field of the Config that the value goes to, with its check.
	to field
	// by is the default. Nil is the zero value of the field.
	by any
	// help says in less than a line what the setting does.
	help string
}

// group is settings that belong together.
type group struct {
	name, title string
	// everyday groups are shown in full by --help.
	everyday bool
	settings []setting
}

const (
	// maxLimit keeps every limit within the 32 bits of the wire.
	maxLimit = 1 << 30
	// maxMemoryLimit bounds the limits of a memory: ordinals have 32 bits.
	maxMemoryLimit = 1 << 30
	// maxReduction is as much as the largest windows hold.
	maxReduction = 1_000_000

	keyConfig          = "config"
	keyDataDir         = "data-dir"
	keyStore           = "store"
	keyBridgeName      = "bridge-name"
	keyWorkspaceShared = "workspace-shared"
	keyMesh            = "mesh"
	// keyBackupDir is that of the commands about backups, too.
	keyBackupDir = "backup-dir"
	keyLogLevel  = "log-level"
	// keyMemoryLanguage is a setting of whatever opens the memory of a store.
	keyMemoryLanguage = "memory-language"
	// The values of duplicates.
	duplicatesKeep, duplicatesReinforce = "keep", "reinforce"
	keySandbox                          = "sandbox"
)

// groups is the table of all settings, with their values in c.
func (c *Config) groups() []group {
	return []group{
		{"serving", "Where it serves, and what it works on", true, c.servingSettings()},
		{"access", "Who may call", true, c.accessSettings()},
		{"watching", "Logs and metrics", true, c.watchingSettings()},
		{"memory", "Long-term memory", false, c.memorySettings()},
		{"embedder", "Vectors for memory: of the server's own model, or of an OpenAI-compatible server", false, c.embedderSettings()},
		{"history", "How prompts show long histories", false, c.historySettings()},
		{"prompts", "Contents of prompts", false, c.promptSettings()},
		{"results", "How results of tools are stored and shown", false, c.resultSettings()},
		{"sessions", "How long idle sessions last", false, c.sessionSettings()},
		{"blobs", "How long offloaded results stay", false, c.blobSettings()},
		{"events", "Events and agents", false, c.eventSettings()},
		{"sandbox", "How programs that tools run are confined", false, c.sandboxSettings()},
		{"web", "What tools reach on networks", false, c.Web.settings()},
		{"sharing", "What tenants and agents share", false, c.sharingSettings()},
		{"backups", "Copies of the store, and checks for damage", false, c.backupSettings()},
		{"limits", "Limits on calls and connections", false, c.limitSettings()},
	}
}

func (c *Config) servingSettings() []setting {
	return []setting{
		{keyConfig, anyText(&c.File, "file"), nil, "TOML file of settings, named like these flags"},
		{"addr", checked(&c.Addr, "host:port", checkAddr), "127.0.0.1:50051", "serve gRPC here, or on unix:/path; no host: 127.0.0.1, port 0: a free one"},
		{"http-addr", optional(checked(&c.HTTPAddr, "host:port|off", checkHTTPAddr)), nil, "HTTP here: the console, REST, /mcp, /metrics; none: " + defaultHTTPAddr + " unless taken; off: not"},
		{"proxy-upstreams", upstreams(&c.ProxyUpstreams), nil, "models on /proxy/NAME/, as ollama=http://127.0.0.1:11434; none: openai, anthropic; off: not"},
		{"mcp-addr", optional(checked(&c.MCPAddr, "host:port", checkTCPAddr)), nil, "serve hosts of the Model Context Protocol here, on /mcp; none: not"},
		{"mcp-hosts", list(&c.MCPHosts, "name,..."), nil, "names, in addition to localhost, by which hosts and web pages may call HTTP"},
		{"mcp-servers", anyText(&c.MCPServers, "JSON"), nil, "MCP servers whose tools agents call, as for " + envMCPServers + ", which counts without this"},
		{"addr-file", anyText(&c.AddrFile, "file"), nil, "write the served address to this file"},
		{keyDataDir, required(&c.DataDir, "directory"), "./.loom/store", "directory of the store; no tool may touch it"},
		{keyStore, c.storePlace(), nil, "postgres://user@host:5432/database or rocksdb:DIR, where the store is; none: --data-dir"},
		{keyBridgeName, anyText(&c.BridgeName, "name"), nil, "name of this server among the servers on one postgres store; none: machine-process"},
		{"bridge-addr", optional(checked(&c.BridgeAddr, "host:port", checkAddr)), nil, "where the others on one postgres store reach this server; none: --addr"},
		{keyMesh, checked(&c.Mesh.Mesh, "off|embedded|URL", cluster.Check).as("off|embedded|URL"), cluster.Off, "share agents and events on one postgres store: embedded, or nats://host:4222"},
		{"mesh-listen", checked(&c.Mesh.Listen, "host:port", checkTCPAddr), "127.0.0.1:0", "where an embedded mesh listens for the others; port 0: a free one"},
		{"ephemeral", yes(&c.Ephemeral), nil, "keep the store in a temporary directory that is removed at the end, not in --data-dir"},
		{"workspace", required(&c.Workspace, "directory"), ".", "directory of the tools; with credentials each tenant has a folder in it"},
		{keyWorkspaceShared, yes(&c.WorkspaceShared), nil, "all servers on one postgres store share this folder, for example by NFS"},
		{"own-workspace", yes(&c.OwnWorkspace), nil, "give every agent its own folder in the workspace, as children have"},
		{"durability", choice(&c.Durability, "sync", "wal", "none"), rockskv.Sync, "what an acknowledged write survives: power loss, the end of the process, nothing"},
	}
}

func (c *Config) accessSettings() []setting {
	return []setting{
		{"credentials", anyText(&c.Credentials, "file"), nil, "TOML file of callers, see below; without it authentication is off"},
		{"trust-network", yes(&c.TrustNetwork), nil, "serve other machines without credentials: any client can do everything"},
		{"tls-cert", anyText(&c.TLSCert, "file"), nil, "PEM file of the server's certificate"},
		{"tls-key", anyText(&c.TLSKey, "file"), nil, "PEM file of its key"},
		{"tls-client-ca", anyText(&c.TLSClientCA, "file"), nil, "PEM file of authorities; every client must then show a certificate"},
		{"loom-addr", optional(checked(&c.LoomAddr, "host:port", checkAddr)), nil, "with credentials, serve loom.v1, whose clients have none, on this loopback address"},
		{"loom-tenant", anyText(&c.LoomTenant, "tenant"), nil, "whose data --loom-addr serves"},
	}
}

func (c *Config) watchingSettings() []setting {
	return []setting{
		{"metrics-addr", optional(checked(&c.MetricsAddr, "host:port", checkTCPAddr)), nil, "serve Prometheus /metrics here; no host: 127.0.0.1"},
		{"otel", yes(&c.OTel), false, "export traces by OTLP; OTEL_EXPORTER_OTLP_ENDPOINT and its kind say where to"},
		{keyLogLevel, checked(&c.LogLevel, "debug|info|warn|error|off", checkLevel), "info", "lowest level that is logged"},
		{"log-format", choice(&c.LogFormat, logs.Text, logs.JSON), logs.Text, "how log lines are written"},
	}
}

func (c *Config) memorySettings() []setting {
	return []setting{
		{keyMemoryLanguage, choice(&c.MemoryLanguage, languages()...).as("language"), analysis.Auto, "of texts in Latin letters, such as german; auto: detected in each text"},
		{"vector-weight", fraction(&c.VectorWeight), memory.DefaultVectorWeight, "weight of vectors relative to words; 0.3 to 0.5 for a good model"},
		{"duplicates", choice(&c.Duplicates, duplicatesKeep, duplicatesReinforce), duplicatesKeep, "how MemorySave treats a repeat of a record by default"},
		{"memory-limit", number(&c.MemoryLimit, "records", 0, maxMemoryLimit), 0, "records of one memory before those worth least are archived; 0: no limit"},
		{"archive-limit", number(&c.ArchiveLimit, "records", 0, maxMemoryLimit), 0, "archived records of one memory before the oldest are deleted; 0: no limit"},
		{"count-accesses", yes(&c.CountAccesses), nil, "count reads and hits in the background, for access_weight and the limit"},
		{"hold-origins", origins(&c.HoldOrigins), nil, "origins whose records wait for review, such as tool,web; none: no review"},
		{keyRedact, redactNames(&c.RedactNames), nil, "what to replace by marks in stored data: secrets, personal, own or pattern names"},
		{"max-versions", number(&c.MaxVersions, "versions", 0, record.MaxVersions), record.MaxVersions, "earlier versions kept of a record; a lower number takes effect when it changes"},
		{"knowledge-endpoint", optional(checked(&c.KnowledgeEndpoint, "url", checkEndpoint)), nil, "a knowledge base outside that prompts ask by POST of {query, limit}; none: the kind knowledge"},
	}
}

func (c *Config) embedderSettings() []setting {
	e := &c.Embedder
	return []setting{
		{"embedder", choice(&c.EmbedderUse, embedderAuto, embedderBuiltin, embedderOff), embedderAuto, "auto: Ollama or TEI on this machine, else builtin, its own model; off: words"},
		{"embedder-url", anyText(&e.BaseURL, "url"), nil, "the server, such as http://127.0.0.1:11434/v1; it overrides auto and builtin"},
		{"embedder-model", anyText(&e.Model, "name"), nil, "model to use there, such as nomic-embed-text; required with a URL"},
		{"embedder-key", anyText(&e.APIKey, "key"), nil, "its API key; better set in the environment"},
		{"embedder-dimensions", number(&e.Dimensions, "numbers", 0, embed.MaxDimension), 0, "length of a vector, where the model lets one choose; 0: as it makes them"},
		{"embedder-space", anyText(&e.Space, "name"), nil, "name of the space of the vectors; none: host/model/dimensions"},
		{"embedder-text-prefix", anyText(&e.TextPrefix, "text"), nil, `prefix of each text, such as "passage: "`},
		{"embedder-query-prefix", anyText(&e.QueryPrefix, "text"), nil, `prefix of each query, such as "query: "`},
	}
}

func (c *Config) historySettings() []setting {
	return []setting{
		{"models", anyText(&c.Models, "file"), nil, "TOML file of models (window, counter, prices), overriding the built-in ones"},
		{"history-policy", anyText(&c.HistoryPolicy, "ledger|append_only|preset"), nil, "how histories are compacted, by default; none: ledger"},
		{"history-preset", anyText(&c.HistoryPreset, "name"), nil, "preset for that, such as three_phase; a refusal lists all names"},
	}
}

func (c *Config) resultSettings() []setting {
	return []setting{
		{"rules", anyText(&c.Rules, "file"), nil, "TOML file of rules for storing tool calls, overriding the built-in ones"},
		{"max-result-bytes", size(&c.MaxResultBytes, 1, blob.MaxBytes), hand.DefaultMaxResultBytes, "longest result that UploadStep accepts"},
		{"tool-result-max-tokens", number(&c.ToolResultMaxTokens, "tokens", 1, maxReduction), compress.DefaultResultTokens, "most that a prompt shows of one result"},
		{"compress-adaptive", yes(&c.CompressAdaptive), nil, "let CompressResult shorten more when the last prompt was full"},
	}
}

func (c *Config) sessionSettings() []setting {
	s := &c.Sessions
	return []setting{
		{"session-idle-ttl", zeroIsNone(span(&s.SessionIdleTTL, 0)), session.DefaultCloseAfter, "close a session after this idle time: listings leave it out; 0: never"},
		{"session-end-after", zeroIsNone(span(&s.SessionEndAfter, 0)), session.DefaultEndAfter, "release its results after this idle time; 0: when it is ended"},
	}
}

func (c *Config) blobSettings() []setting {
	b := &c.Blobs
	return []setting{
		{"blob-ttl", blobTTLs(&b.TTL), nil, "how long results of a kind are kept, such as shell=1h,note=forever"},
		{"blob-max-bytes", zeroIsNone(size(&b.MaxOwnerBytes, 0, unlimited)), int64(blob.DefaultMaxOwnerBytes), "most that one agent's results may take; 0: no bound"},
	}
}

func (c *Config) eventSettings() []setting {
	r := &c.Retention
	return []setting{
		{"events-max-age", zeroIsNone(span(&r.MaxAge, 0)), events.DefaultMaxAge, "keep durable events this long; 0: for ever"},
		{"events-max-bytes", size(&r.MaxBytes, 1, unlimited), events.DefaultMaxBytes, "keep at most this much of all topics' events; tenants share it"},
		{"approval-timeout", positive(&c.ApprovalTimeout), approval.DefaultWait, "longest wait of a call for a person's approval; then it is denied"},
		{"audit-retention", zeroIsNone(span(&c.AuditRetention, 0)), audit.DefaultRetention, "keep the record of each tool call this long; its digest stays; 0: for ever"},
		{"retain-records", span(&c.RetainRecords, 0), 0, "delete records not changed or repeated for this long; pinned ones stay; 0: never"},
		{"retain-sessions", span(&c.RetainSessions, 0), 0, "delete sessions idle for this long, including steps; 0: never"},
	}
}

func (c *Config) sharingSettings() []setting {
	s, l, d := &c.Sharing, &c.Limits, server.DefaultLimits()
	bytes := func(to *int) field { return size(to, 1, maxLimit) }
	return []setting{
		{"max-jobs", number(&s.MaxJobs, "jobs", 1, maxLimit), jobs.DefaultMaxRunning, "programs that run in the background at once; more are refused"},
		{"max-tools", number(&s.MaxTools, "tools", 1, maxLimit), hand.DefaultMaxRunning, "tools that run at once; more wait"},
		{
			"tool-limits", toolRules(&s.ToolLimits), nil,
			"most calls of tools, as 'web:* 30/m,* 50/s per tenant,shell:run 4 at once'; else refused",
		},
		{"max-message-bytes", bytes(&l.MaxRequestBytes), d.MaxRequestBytes, "memory for requests, for answers and for events, each; more wait or are refused"},
		{"max-store-bytes", size(&s.MaxStoreBytes, 0, unlimited), 0, "what all tenants may store, each its share, measured every 10 s; 0: what the disk holds"},
	}
}

func (c *Config) sandboxSettings() []setting {
	s := &c.Sandbox
	return []setting{
		{
			keySandbox, choice(&s.Setting, string(sandbox.Auto), string(sandbox.Require), string(sandbox.Off)), string(sandbox.Auto),
			"auto: confined, else not run; require: do not start unless confined; off",
		},
		{
			"sandbox-tier", choice(&s.Tier, sandbox.TierAuto, sandbox.TierNamespaces, sandbox.TierLandlock), sandbox.TierAuto,
			"the only tier to use; the command doctor shows which work here",
		},
		{"sandbox-read", list(&s.Read, "directory,..."), nil, "absolute paths outside the workspace that programs may also use"},
		{"sandbox-allow-off", yes(&s.AllowOff), nil, "let profiles of the settings file use the mode off, which disables the sandbox"},
		{"shell-allow", list(&s.Allow, "name,..."), nil, "programs that calls may run; *: all; none: all that are confined (loom.v1: its list)"},
	}
}

func (c *Config) backupSettings() []setting {
	b := &c.Backups
	return []setting{
		{keyBackupDir, anyText(&b.Dir, "directory"), nil, "directory of backups of the store, outside the workspace; none: no backups"},
		{"backup-interval", zeroIsNone(span(&b.Interval, 0)), backup.DefaultEvery, "time between two backups; 0: only on request"},
		{"backup-keep", number(&b.Keep, "backups", 1, maxLimit), backup.DefaultKeep, "how many stay"},
		{"scrub-rate", size(&c.Scrub.Rate, 0, maxLimit), integrity.DefaultScrubRate, "bytes per second of the daily check of the store for damage; 0: never"},
	}
}

func (c *Config) limitSettings() []setting {
	l, d := &c.Limits, server.DefaultLimits()
	bytes := func(to *int) field { return size(to, 1, maxLimit) }
	return []setting{
		{"max-receive-bytes", bytes(&l.MaxReceiveBytes), d.MaxReceiveBytes, "largest request message"},
		{"max-calls", number(&l.MaxCalls, "calls", 1, maxLimit), d.MaxCalls, "unary calls that run at once, those aside that wait for an agent; more wait"},
		{"max-streams", number(&l.MaxStreams, "streams", 1, maxLimit), d.MaxStreams, "open streams; more are refused"},
		{"max-connections", number(&l.MaxConnections, "connections", 1, maxLimit), d.MaxConnections, "open connections; beyond it silent ones are closed, and more wait"},
		{"drain-timeout", positive(&l.DrainTimeout), d.DrainTimeout, "longest wait for calls in flight at shutdown"},
	}
}

// settings are all rows of the table.
func (c *Config) settings() []setting {
	var all []setting
	for _, g := range c.groups() {
		all = append(all, g.settings...)
	}
	return all
}

// NewConfig returns the default of every setting.
func NewConfig() Config {
	var c Config
	for _, s := range c.settings() {
		if s.by == nil {
			continue
		}
		if err := s.to.Set(fmt.Sprint(s.by)); err != nil {
			panic(fmt.Sprintf("the default of --%s %v", s.name, err)) // a fault in the table, which every start would show
		}
	}
	return c
}

// envName is the name of a setting in the environment.
func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
