package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loom-bridge/loom-bridge/context/assemble"
)

// foldMetrics count what was folded; nil counts nothing.
type foldMetrics struct {
	batches *prometheus.CounterVec
	refs    prometheus.Counter
	saved   prometheus.Counter
}

// newFoldMetrics registers the metrics.
func newFoldMetrics(registerer prometheus.Registerer) *foldMetrics {
	m := &foldMetrics{
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loom_bridge_fold_batches_total", Help: "Batches of folds that were stored, by reason.",
		}, []string{"reason"}),
		refs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "loom_bridge_folded_entries_total", Help: "Steps and messages that were folded.",
		}),
		saved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "loom_bridge_folded_tokens_total", Help: "Tokens that prompts take less after each batch of folds.",
		}),
	}
	registerer.MustRegister(m.batches, m.refs, m.saved)
	return m
}

// count adds a batch that was stored; nil is none.
func (m *foldMetrics) count(b *assemble.Batch) {
	if m == nil || b == nil {
		return
	}
	m.batches.WithLabelValues(b.Reason.String()).Inc()
	m.refs.Add(float64(len(b.Refs)))
	m.saved.Add(float64(max(b.Before-b.After, 0)))
}
