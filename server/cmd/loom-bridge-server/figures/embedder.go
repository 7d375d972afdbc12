package figures

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loom-bridge/loom-bridge/memory/embed"
)

// countedEmbedder counts what an embedder is asked.
type countedEmbedder struct {
	embed.Embedder
	asked   *prometheus.CounterVec
	seconds prometheus.Counter
}

// CountEmbedder returns an embedder that counts; without metrics or without an
// embedder, what it is given.
func (m *Metrics) CountEmbedder(e embed.Embedder) embed.Embedder {
	if e == nil || m == nil {
		return e
	}
	c := countedEmbedder{
		Embedder: e,
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loom_bridge_embedder_requests_total", Help: "What the embedder was asked, by outcome: ok or failed.",
		}, []string{"outcome"}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "loom_bridge_embedder_seconds_total", Help: "Time that the embedder took.",
		}),
	}
	m.registry.MustRegister(c.asked, c.seconds)
	return c
}

// Embed is the embedder's.
func (c countedEmbedder) Embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	defer c.count(time.Now(), &err)
	return c.Embedder.Embed(ctx, texts)
}

// EmbedQuery is the embedder's.
func (c countedEmbedder) EmbedQuery(ctx context.Context, text string) (vector []float32, err error) {
	defer c.count(time.Now(), &err)
	return embed.Query(ctx, c.Embedder, text)
}

func (c countedEmbedder) count(since time.Time, err *error) {
	c.seconds.Add(time.Since(since).Seconds())
	outcome := "ok"
	if *err != nil {
		outcome = "failed"
	}
	c.asked.WithLabelValues(outcome).Inc()
}
