package main

import (
	"context"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// timeLimits are times of which a caller sees the end.
func timeLimits() []limits {
	return []limits{
		{both: embedded(), change: func(_ *stand, c *Config) { c.Embedder.Timeout = 10 * time.Minute }, rows: []limit{{"drain-timeout", "1s", 1 + 0.5, "seconds", "a query in flight at the stop; its tool has half a second more", func(s *stand) float64 {
			s.model.hold()
			s.atOnce(1, func(ctx context.Context, _ int) error {
				_, err := s.bridge().MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "x"})
				return err
			})
			s.decided(1, s.atModel, func() int { return 0 })
			began := time.Now()
			_ = s.Stop()
			return time.Since(began).Seconds()
		}}}},
	}
}
