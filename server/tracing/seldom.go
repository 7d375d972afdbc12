package tracing

import (
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
)

// seldom logs errors of the export, at most one a minute: a collector that is not there fails
// every five seconds.
func seldom(logger *slog.Logger) otel.ErrorHandler {
	var (
		mu   sync.Mutex
		last time.Time
	)
	return otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= unreachableEvery {
			last = now
			logger.Warn("traces are not exported", "error", err)
		}
	})
}
