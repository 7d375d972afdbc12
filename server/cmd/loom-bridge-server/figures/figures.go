// Package figures are a server's metrics in the format of Prometheus.
package figures

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/loom-bridge/loom-bridge/bridge/children"
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

// Watch adds the figures about the stored data and who is connected. They are counted until
// stop is called.
func (m *Metrics) Watch(parts *compose.Domain, engine kv.Monitored, scrub func() integrity.Report, logger *slog.Logger) (stop func() error) {
	if m == nil {
		return func() error { return nil }
	}
	f := &figures{parts: parts, engine: engine, logger: logger}
	m.registry.MustRegister(f, newStoreMetrics(engine.Health(), scrub))
	if store, ok := engine.(farStore); ok {
		m.registry.MustRegister(newFarMetrics(store))
	}
	return f.start()
}

// WatchBackups adds the figures about backups, if any are made.
func (m *Metrics) WatchBackups(keeper *backup.Keeper) {
	if m != nil && keeper != nil {
		m.registry.MustRegister(newBackupMetrics(keeper))
	}
}

// WatchRedaction adds the figures about redaction, where there is one.
func (m *Metrics) WatchRedaction(r *redact.Redactor) {
	if m == nil {
		return
	}
	for _, name := range r.Names() {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "loom_bridge_redacted_total", Help: "Secrets that were taken out of what callers sent and tools gave, by pattern.",
			ConstLabels: prometheus.Labels{"pattern": name},
		}, func() float64 { return float64(r.Totals()[name]) }))
	}
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

// figure is one number of a scrape.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gaugeOf(name, help string, labels ...string) figure {
	return figure{prometheus.NewDesc("loom_bridge_"+name, help, labels, nil), prometheus.GaugeValue}
}

// counting is the same as a counter.
func (f figure) counting() figure {
	f.kind = prometheus.CounterValue
	return f
}

func counterOf(name, help string) figure {
	return figure{prometheus.NewDesc("loom_bridge_"+name, help, nil, nil), prometheus.CounterValue}
}

var (
	figureRecords    = gaugeOf("records", "Records of memory, as of the last count.")
	figurePending    = gaugeOf("embedder_pending_records", "Records that wait for a vector of the embedder, as of the last count, up to 100,000.")
	figureBlobs      = gaugeOf("blobs", "Offloaded results, equal ones of an owner counted once, as of the last count.")
	figureBlobBytes  = gaugeOf("blob_bytes", "What they hold, before compression, as of the last count.")
	figureTopics     = gaugeOf("topics", "Topics that have had a durable event, as of the last count.")
	figureEvents     = gaugeOf("events", "Durable events that are kept, as of the last count.")
	figureMessages   = gaugeOf("direct_messages", "Direct messages that wait in the boxes of agents, as of the last count.")
	figureEventBytes = gaugeOf("event_bytes", "What they take, as the retention counts it, as of the last count.")

	figureStore     = gaugeOf("store_bytes", "What the store takes on disk, by keyspace, without its log.", "keyspace")
	figureCommits   = counterOf("store_commits_total", "Commits that were acknowledged.")
	figureConflicts = counterOf("store_conflicts_total", "Commits that were tried again because another came first.")
	figureSyncs     = counterOf("store_syncs_total", "Syncs of the store's log.")
	figureSyncTime  = counterOf("store_sync_seconds_total", "Time that these syncs took.")
	figureLogBytes  = counterOf("store_log_bytes_total", "Bytes written to the store's log.")

	figureAgents     = gaugeOf("agents", "Agents that are registered.")
	figureAttached   = gaugeOf("agents_attached", "Agents with an open stream.")
	figureJobs       = gaugeOf("background_jobs", "Programs that run in the background of sessions.")
	figureChildren   = gaugeOf("children", "Agents that were spawned and have no result yet.")
	figureEnded      = gaugeOf("children_ended_total", "Spawned agents that got their results, by outcome: returned, failed, timeout or disconnected.", "outcome").counting()
	figureLimitedRun = gaugeOf("tool_limit_running", "Calls under way that count for a limit of calls at once, by rule.", "rule")
	figureLimited    = gaugeOf("tool_limit_refused_total", "Calls that a limit of tools refused, by rule.", "rule").counting()
	figureReaders    = gaugeOf("subscriptions", "Open subscriptions to events.")
	figureBacklog    = gaugeOf("subscription_backlog_events", "Events that wait for their readers, each counted for each.")
	figureReached    = gaugeOf("egress_connections_total", "Connections of tools to hosts, by what came of them: allowed, denied, failed or limited.", "outcome").counting()
	figurePassed     = gaugeOf("egress_bytes_total", "Bytes between tools and hosts, sent or received.", "direction").counting()
	figureHosted     = gaugeOf("mcp_server_ready", "1 where the MCP server is ready, 0 where it can't be reached.", "tenant", "server")
	figureHostTools  = gaugeOf("mcp_server_tools", "Tools of the MCP server that can be called.", "tenant", "server")
	figureHostTokens = gaugeOf("mcp_server_tool_tokens", "About what all tools of the MCP server would take in a prompt.", "tenant", "server")
	figureAged       = gaugeOf("retention_deleted_total", "What was deleted for its age, by what it was: records, sessions, results of sessions, or audit for the records of calls.", "what").counting()
	figureOpen       = gaugeOf("egress_connections", "Connections of tools to hosts that are open.")
	figureMaxBacklog = gaugeOf("subscription_backlog_max_events", "Events that wait for the reader that is furthest behind.")
)

// Describe sends nothing: the figures of a census come with the first one.
func (*figures) Describe(chan<- *prometheus.Desc) {}

// Collect sends all figures.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	send := func(one figure, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(one.desc, one.kind, value, labels...)
	}
	f.mu.Lock()
	census, counted := f.census, f.counted
	f.mu.Unlock()
	if counted {
		send(figureRecords, float64(census.memory.Records))
		send(figurePending, float64(census.memory.Pending))
		send(figureBlobs, float64(census.blobs.Blobs))
		send(figureBlobBytes, float64(census.blobs.Bytes))
		send(figureTopics, float64(census.events.Topics))
		send(figureEvents, float64(census.events.Events))
		send(figureEventBytes, float64(census.events.Bytes))
		send(figureMessages, float64(census.messages))
	}
	if own, ok := f.engine.(*rockskv.DB); ok { // PostgreSQL has its own figures
		sizes := own.Sizes()
		for _, ks := range kv.Keyspaces() {
			send(figureStore, float64(sizes[ks]), ks.String())
		}
		store := own.Stats()
		send(figureCommits, float64(store.Commits))
		send(figureConflicts, float64(store.Conflicts))
		send(figureSyncs, float64(store.WALSyncs))
		send(figureSyncTime, store.SyncTime.Seconds())
		send(figureLogBytes, float64(store.WALBytes))
	}

	known, attached := f.parts.Agents.Count()
	send(figureAgents, float64(known))
	send(figureAttached, float64(attached))
	send(figureJobs, float64(f.parts.Jobs.Running()))
	family := f.parts.Children.Stats()
	send(figureChildren, float64(family.Live))
	for _, outcome := range children.Outcomes() {
		send(figureEnded, float64(family.Ended[outcome]), outcome)
	}
	for _, limit := range f.parts.Hand.Limits() {
		send(figureLimited, float64(limit.Refused), limit.Rule.String())
		if limit.Rule.Every == 0 {
			send(figureLimitedRun, float64(limit.Running), limit.Rule.String())
		}
	}
	readers := f.parts.Events.Readers()
	send(figureReaders, float64(readers.Subscriptions))
	send(figureBacklog, float64(readers.Backlog))
	send(figureMaxBacklog, float64(readers.MaxBacklog))
	for _, s := range f.parts.MCP.All() {
		ready := 0.0
		if s.State == mcp.Ready {
			ready = 1
		}
		send(figureHosted, ready, s.Tenant, s.Name)
		send(figureHostTools, float64(s.Tools), s.Tenant, s.Name)
		send(figureHostTokens, float64(s.Tokens), s.Tenant, s.Name)
	}
	aged := f.parts.Retention.Stats()
	send(figureAged, float64(aged.Records), "records")
	send(figureAged, float64(aged.Sessions), "sessions")
	send(figureAged, float64(aged.Results), "results")
	send(figureAged, float64(f.parts.Audit.Swept()), "audit")
	out := f.parts.Egress.Stats()
	send(figureReached, float64(out.Allowed), "allowed")
	send(figureReached, float64(out.Denied), "denied")
	send(figureReached, float64(out.Failed), "failed")
	send(figureReached, float64(out.Limited), "limited")
	send(figurePassed, float64(out.Sent), "sent")
	send(figurePassed, float64(out.Received), "received")
	send(figureOpen, float64(out.Open))
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
