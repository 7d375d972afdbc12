package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// farStore is a store in PostgreSQL.
type farStore interface {
	Stats() pgkv.Stats
	Schema() string
	Self() registry.Bridge
}

// farMetrics shows how a store in PostgreSQL is used, by its schema and the name of this
// server among the servers that share it.
type farMetrics struct {
	store farStore
	inUse, most, waits, waited,
	commits, conflicts, unknown, joins, seconds *prometheus.Desc
}

func newFarMetrics(store farStore) *farMetrics {
	labels := prometheus.Labels{"store": store.Schema(), "bridge": store.Self().Name}
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("loom_bridge_postgres_"+name, help, variable, labels)
	}
	return &farMetrics{
		store:     store,
		inUse:     desc("connections", "Connections to PostgreSQL in use, by pool.", "pool"),
		most:      desc("connections_most", "How many there may be.", "pool"),
		waits:     desc("connection_waits_total", "How often somebody waited for a connection.", "pool"),
		waited:    desc("connection_wait_seconds_total", "How long they waited together.", "pool"),
		commits:   desc("commits_total", "Commits that were written."),
		conflicts: desc("conflicts_total", "Commits that were refused because something else was written before."),
		unknown:   desc("unknown_outcomes_total", "Commits of which no answer came."),
		joins:     desc("transactions_total", "Transactions that wrote commits, several at once where several waited."),
		seconds:   desc("transaction_seconds_total", "How long these took together."),
	}
}

// Describe is prometheus.Collector's.
func (m *farMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect is prometheus.Collector's.
func (m *farMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.store.Stats()
	count := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, labels...)
	}
	for name, pool := range map[string]pgkv.Pool{"calls": s.Calls, "views": s.Views} {
		to <- prometheus.MustNewConstMetric(m.inUse, prometheus.GaugeValue, float64(pool.InUse), name)
		to <- prometheus.MustNewConstMetric(m.most, prometheus.GaugeValue, float64(pool.Most), name)
		count(m.waits, float64(pool.Waits), name)
		count(m.waited, pool.WaitTime.Seconds(), name)
	}
	count(m.commits, float64(s.Commits))
	count(m.conflicts, float64(s.Conflicts))
	count(m.unknown, float64(s.Unknown))
	count(m.joins, float64(s.Joins))
	count(m.seconds, s.CommitTime.Seconds())
}
