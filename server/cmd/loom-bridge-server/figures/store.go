package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
)

// storeMetrics shows how the store is.
type storeMetrics struct {
	health *kv.Health
	scrub  func() integrity.Report
	writable, damaged,
	passes, bytes, findings, last *prometheus.Desc
}

func newStoreMetrics(health *kv.Health, scrub func() integrity.Report) *storeMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("loom_bridge_store_"+name, help, labels, nil)
	}
	return &storeMetrics{
		health: health, scrub: scrub,
		writable: desc("writable", "1 while writes can succeed, 0 while they can't."),
		damaged:  desc("damaged", "1 while something is known to be damaged, by keyspace; store stands for what belongs to all.", "keyspace"),
		passes:   desc("scrub_passes_total", "How often the whole store was read back."),
		bytes:    desc("scrub_bytes_total", "Bytes that were read for it."),
		findings: desc("scrub_findings", "What the last such reading found damaged."),
		last:     desc("scrub_last_end_seconds", "When it ended, in seconds since 1970; 0 for never."),
	}
}

// Describe is prometheus.Collector's.
func (m *storeMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect is prometheus.Collector's.
func (m *storeMetrics) Collect(to chan<- prometheus.Metric) {
	condition, _ := m.health.Condition()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(m.writable, oneIf(condition.Failed == nil))
	for _, ks := range append(kv.Keyspaces(), kv.WholeStore) {
		gauge(m.damaged, oneIf(condition.Damaged[ks] != nil), ks.String())
	}
	report, last := m.scrub(), 0.0
	if !report.End.IsZero() {
		last = float64(report.End.UnixMilli()) / 1000
	}
	to <- prometheus.MustNewConstMetric(m.passes, prometheus.CounterValue, float64(report.Passes))
	to <- prometheus.MustNewConstMetric(m.bytes, prometheus.CounterValue, float64(report.Bytes))
	gauge(m.findings, float64(report.Damaged))
	gauge(m.last, last)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// backupMetrics shows how the backups go.
type backupMetrics struct {
	keeper                                      *backup.Keeper
	made, failed, last, seconds, bytes, renewed *prometheus.Desc
}

func newBackupMetrics(keeper *backup.Keeper) *backupMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("loom_bridge_backup_"+name, help, nil, nil)
	}
	return &backupMetrics{
		keeper:  keeper,
		made:    desc("made_total", "Backups that were made."),
		failed:  desc("failed_total", "Backups that failed."),
		last:    desc("last_seconds", "When the newest backup was begun, in seconds since 1970; 0 for none."),
		seconds: desc("duration_seconds", "How long the last backup took; 0 if this server has made none."),
		bytes:   desc("bytes", "Size of the newest backup."),
		renewed: desc("new_bytes", "Size of what the newest backup has that the one before had not."),
	}
}

// Describe is prometheus.Collector's.
func (m *backupMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect is prometheus.Collector's.
func (m *backupMetrics) Collect(to chan<- prometheus.Metric) {
	r, last := m.keeper.Report(), 0.0
	if !r.Last.Time.IsZero() {
		last = float64(r.Last.Time.UnixMilli()) / 1000
	}
	for desc, value := range map[*prometheus.Desc]float64{m.made: float64(r.Made), m.failed: float64(r.Failed)} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value)
	}
	for desc, value := range map[*prometheus.Desc]float64{
		m.last: last, m.seconds: r.Seconds, m.bytes: float64(r.Last.Bytes), m.renewed: float64(r.Last.NewBytes),
	} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}
