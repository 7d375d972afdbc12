package main

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/domain"
)

// metricsTimeout bounds one scrape.
const metricsTimeout = 10 * time.Second

// metrics are the figures that are served, and where. The zero value serves none.
type metrics struct {
	registry *prometheus.Registry
	address  string
}

// startMetrics serves the metrics, if it is asked for.
func startMetrics(config Config, opened *closers) (metrics, error) {
	if config.MetricsAddr == "" {
		return metrics{}, nil
	}
	listener, err := listen("metrics-addr", config.MetricsAddr)
	if err != nil {
		return metrics{}, err
	}
	m := metrics{registry: prometheus.NewRegistry(), address: addressOf(listener)}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	opened.add(serveMetrics(listener, m.registry).Close)
	return m, nil
}

// calls are the figures about calls; nil when none are served.
func (m metrics) calls() *server.Metrics {
	if m.registry == nil {
		return nil
	}
	return server.NewMetrics(m.registry)
}

// watch adds the figures about what is stored and who is connected.
func (m metrics) watch(parts *domain.Domain, engine *rockskv.DB, logger *slog.Logger, opened *closers) {
	if m.registry == nil {
		return
	}
	f := &figures{parts: parts, engine: engine, logger: logger}
	m.registry.MustRegister(f)
	opened.add(f.start())
}

// serveMetrics answers /metrics until the returned server is closed.
func serveMetrics(listener net.Listener, registry *prometheus.Registry) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	s := &http.Server{Handler: mux, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, IdleTimeout: time.Minute}
	go func() { _ = s.Serve(listener) }()
	return s
}
