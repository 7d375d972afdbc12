package main

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Scrub is how a running server reads its store back.
type Scrub struct {
	// Interval is the time between the beginnings of two readings; less than 0 never reads.
	Interval time.Duration
	// Rate is how many bytes are read in a second.
	Rate int
}

// startScrub begins to read the store back, unless the settings say never. What it
// has come to is told by the returned function.
func startScrub(config Config, engine kv.Engine, logger *slog.Logger, opened *closers) func() integrity.Report {
	if config.Scrub.Interval < 0 {
		return func() integrity.Report { return integrity.Report{} }
	}
	scrub := integrity.StartScrub(engine, &integrity.ScrubOptions{
		Every: config.Scrub.Interval, BytesPerSecond: int64(config.Scrub.Rate), Logger: logger,
	})
	opened.add(scrub.Close)
	return scrub.Report
}

// logHealth writes a line whenever the store's condition changes.
func logHealth(health *kv.Health, logger *slog.Logger, opened *closers) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for known := ""; ; {
			condition, changed := health.Condition()
			switch text := condition.String(); {
			case text != "ok":
				logger.Error("the store is not well", "condition", text)
				known = text
			case known != "":
				logger.Info("the store is well again")
				known = ""
			}
			select {
			case <-changed:
			case <-stop:
				return
			}
		}
	}()
	opened.add(func() error {
		close(stop)
		<-stopped
		return nil
	})
}

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
