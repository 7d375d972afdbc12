// Package figures are a server's metrics in the format of Prometheus.
package figures

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/redact"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/observe"
)

// metricsTimeout bounds one scrape.
const metricsTimeout = 10 * time.Second

// Metrics are the figures that are served. Nil serves none.
type Metrics struct {
	registry *prometheus.Registry
	http.Handler
}

// New has the figures of the process. It answers a scrape on whatever path.
func New() *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Metrics{r, promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, EnableOpenMetrics: true})}
}

// Serve answers /metrics on a listener until the returned server is closed.
func (m *Metrics) Serve(listener net.Listener) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
	s := &http.Server{Handler: mux, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, IdleTimeout: time.Minute}
	go func() { _ = s.Serve(listener) }()
	return s
}

// Calls are the figures about calls; nil when none are served.
func (m *Metrics) Calls() *observe.Metrics {
	if m == nil {
		return nil
	}
	return observe.NewMetrics(m.registry)
}

// source is what a scrape asks for figures. Which series it has changes, so that it describes
// none before.
type source func(show shower)

// shower adds one figure to a scrape: a counter where its name ends in _total, else a gauge.
// labels are names and values in turns.
type shower func(name, help string, value float64, labels ...string)

// with puts a prefix before names, and labels behind the others.
func (show shower) with(prefix string, more ...string) shower {
	return func(name, help string, value float64, labels ...string) {
		show(prefix+name, help, value, append(labels, more...)...)
	}
}

// Describe is prometheus.Collector's.
func (source) Describe(chan<- *prometheus.Desc) {}

// Collect is prometheus.Collector's.
func (s source) Collect(to chan<- prometheus.Metric) {
	s(func(name, help string, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		var names, values []string
		for pair := range slices.Chunk(labels, 2) {
			names, values = append(names, pair[0]), append(values, pair[1])
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("loom_bridge_"+name, help, names, nil), kind, value, values...)
	})
}

// Watch adds the figures about the stored data and who is connected. They are counted until
// stop is called.
func (m *Metrics) Watch(parts *compose.Domain, engine kv.Monitored, scrub func() integrity.Report, logger *slog.Logger) (stop func() error) {
	if m == nil {
		return func() error { return nil }
	}
	f := &figures{parts: parts, engine: engine, logger: logger}
	m.registry.MustRegister(source(f.show), ofHealth(engine.Health(), scrub))
	if store, ok := engine.(farStore); ok {
		m.registry.MustRegister(ofFarStore(store))
	}
	return f.start()
}

// WatchBackups adds the figures about backups, if any are made.
func (m *Metrics) WatchBackups(keeper *backup.Keeper) {
	if m != nil && keeper != nil {
		m.registry.MustRegister(ofBackups(keeper))
	}
}

// WatchMesh adds the figures about the mesh, where there is one.
func (m *Metrics) WatchMesh(with *mesh.Mesh) {
	if m != nil && with != nil {
		m.registry.MustRegister(ofMesh(with))
	}
}

// WatchRedaction adds the figures about redaction, where there is one.
func (m *Metrics) WatchRedaction(r *redact.Redactor) {
	if m == nil {
		return
	}
	m.registry.MustRegister(source(func(show shower) {
		totals := r.Totals()
		for _, name := range r.Names() {
			show("redacted_total", "Secrets that were taken out of what callers sent and tools gave, by pattern.", float64(totals[name]), "pattern", name)
		}
	}))
}

// censusEvery is how often stored data is counted. A scrape shows the last count, and reads
// nothing.
const censusEvery = 30 * time.Second

// figures are the metrics of the store and of connected clients.
type figures struct {
	parts  *compose.Domain
	engine kv.Monitored
	logger *slog.Logger

	mu      sync.Mutex
	counted bool   // guarded by mu; there has been a census
	census  census // guarded by mu; the last
}

// census is how much is stored, for all tenants.
type census struct {
	memory memory.Totals
	blobs  blob.Usage
	events events.Totals
	// messages are the direct messages that are kept.
	messages int
}

// takeCensus counts the stored data. It reads a few keys of each owner and topic, so its
// time grows with their number, not with what they hold.
func takeCensus(ctx context.Context, parts *compose.Domain) (c census, err error) {
	if c.memory, err = parts.Memory.Totals(ctx); err != nil {
		return census{}, err
	}
	if c.blobs, err = parts.Blobs.Total(ctx); err != nil {
		return census{}, err
	}
	if c.messages, err = parts.Messages.Total(ctx); err != nil {
		return census{}, err
	}
	c.events, err = parts.Events.Totals(ctx)
	return c, err
}

// show adds all figures to a scrape.
func (f *figures) show(show shower) {
	f.mu.Lock()
	census, counted := f.census, f.counted
	f.mu.Unlock()
	if counted {
		show("records", "Records of memory, as of the last count.", float64(census.memory.Records))
		show("embedder_pending_records", "Records that wait for a vector of the embedder, as of the last count, up to 100,000.", float64(census.memory.Pending))
		show("blobs", "Offloaded results, equal ones of an owner counted once, as of the last count.", float64(census.blobs.Blobs))
		show("blob_bytes", "What they hold, before compression, as of the last count.", float64(census.blobs.Bytes))
		show("topics", "Topics that have had a durable event, as of the last count.", float64(census.events.Topics))
		show("events", "Durable events that are kept, as of the last count.", float64(census.events.Events))
		show("event_bytes", "What they take, as the retention counts it, as of the last count.", float64(census.events.Bytes))
		show("direct_messages", "Direct messages that wait in the boxes of agents, as of the last count.", float64(census.messages))
	}
	if own, ok := f.engine.(*rockskv.DB); ok { // PostgreSQL has its own figures
		sizes := own.Sizes()
		for _, ks := range kv.Keyspaces() {
			show("store_bytes", "What the store takes on disk, by keyspace, without its log.", float64(sizes[ks]), "keyspace", ks.String())
		}
		store := own.Stats()
		show("store_commits_total", "Commits that were acknowledged.", float64(store.Commits))
		show("store_conflicts_total", "Commits that were tried again because another came first.", float64(store.Conflicts))
		show("store_syncs_total", "Syncs of the store's log.", float64(store.WALSyncs))
		show("store_sync_seconds_total", "Time that these syncs took.", store.SyncTime.Seconds())
		show("store_log_bytes_total", "Bytes written to the store's log.", float64(store.WALBytes))
	}

	known, attached := f.parts.Agents.Count()
	show("agents", "Agents that are registered.", float64(known))
	show("agents_attached", "Agents with an open stream.", float64(attached))
	show("background_jobs", "Programs that run in the background of sessions.", float64(f.parts.Jobs.Running()))
	family := f.parts.Children.Stats()
	show("children", "Agents that were spawned and have no result yet.", float64(family.Live))
	for _, outcome := range children.Outcomes() {
		show("children_ended_total", "Spawned agents that got their results, by outcome: returned, failed, timeout or disconnected.", float64(family.Ended[outcome]), "outcome", outcome)
	}
	for _, limit := range f.parts.Hand.Limits() {
		show("tool_limit_refused_total", "Calls that a limit of tools refused, by rule.", float64(limit.Refused), "rule", limit.Rule.String())
		if limit.Rule.Every == 0 {
			show("tool_limit_running", "Calls under way that count for a limit of calls at once, by rule.", float64(limit.Running), "rule", limit.Rule.String())
		}
	}
	readers := f.parts.Events.Readers()
	show("subscriptions", "Open subscriptions to events.", float64(readers.Subscriptions))
	show("subscription_backlog_events", "Events that wait for their readers, each counted for each.", float64(readers.Backlog))
	show("subscription_backlog_max_events", "Events that wait for the reader that is furthest behind.", float64(readers.MaxBacklog))
	for _, s := range f.parts.MCP.All() {
		show("mcp_server_ready", "1 where the MCP server is ready, 0 where it can't be reached.", oneIf(s.State == mcp.Ready), "tenant", s.Tenant, "server", s.Name)
		show("mcp_server_tools", "Tools of the MCP server that can be called.", float64(s.Tools), "tenant", s.Tenant, "server", s.Name)
		show("mcp_server_tool_tokens", "About what all tools of the MCP server would take in a prompt.", float64(s.Tokens), "tenant", s.Tenant, "server", s.Name)
	}
	aged := f.parts.Retention.Stats()
	for what, n := range map[string]int64{"records": aged.Records, "sessions": aged.Sessions, "results": aged.Results, "audit": f.parts.Audit.Swept()} {
		show("retention_deleted_total", "What was deleted for its age, by what it was: records, sessions, results of sessions, or audit for the records of calls.", float64(n), "what", what)
	}
	out := f.parts.Egress.Stats()
	for outcome, n := range map[string]int64{"allowed": out.Allowed, "denied": out.Denied, "failed": out.Failed, "limited": out.Limited} {
		show("egress_connections_total", "Connections of tools to hosts, by what came of them: allowed, denied, failed or limited.", float64(n), "outcome", outcome)
	}
	for direction, n := range map[string]int64{"sent": out.Sent, "received": out.Received} {
		show("egress_bytes_total", "Bytes between tools and hosts, sent or received.", float64(n), "direction", direction)
	}
	show("egress_connections", "Connections of tools to hosts that are open.", float64(out.Open))
}

// start counts the stored data, at once and from time to time, until the returned
// function is called.
func (f *figures) start() (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(censusEvery)
		defer ticker.Stop()
		for {
			f.count(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() error {
		cancel()
		<-ended
		return nil
	}
}

func (f *figures) count(ctx context.Context) {
	census, err := takeCensus(ctx, f.parts)
	if err != nil {
		if ctx.Err() == nil {
			f.logger.Warn("metrics: could not count the stored data", "error", err)
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.census, f.counted = census, true
}
