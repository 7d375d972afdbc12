package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// shortest is the shortest time that something takes, of a few tries: a busy machine makes
// any of them longer. A time that is within the limit ends them.
func shortest(most time.Duration, try func()) (seconds float64) {
	for range 10 {
		began := time.Now()
		try()
		if took := time.Since(began).Seconds(); seconds == 0 || took < seconds {
			seconds = took
		}
		if seconds <= mostOver*most.Seconds() {
			break
		}
	}
	return seconds
}

// timeLimits are times of which a caller sees the end.
func timeLimits() []limits {
	const second = time.Second
	timed := func(setting, by string, try func(s *stand)) limit {
		return limit{setting, "1s", 1, "seconds", by, func(s *stand) float64 { return shortest(second, func() { try(s) }) }}
	}
	n := atomic.Int64{}
	return []limits{
		{both: embedded(), rows: []limit{timed("embedder-timeout", "a request that is not answered", func(s *stand) {
			s.model.hold()
			asked := s.atModel()
			s.atOnce(1, func(ctx context.Context, _ int) error {
				_, err := s.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: fmt.Sprint("e", n.Add(1)), Text: "text"})
				return err
			})
			for s.atModel() == asked {
				time.Sleep(time.Millisecond)
			}
			for begun := s.goneFrom(); s.goneFrom() == begun; {
				time.Sleep(time.Millisecond)
			}
		})}},
		{both: []string{"--web-hosts", "site.test=$HOST"}, rows: []limit{timed("web-timeout", "a page that does not come", func(s *stand) {
			s.tool("web:fetch", `{"url":"http://site.test/slow"}`)
		})}},
		{both: []string{"--web-hosts", "site.test=$HOST", "--web-timeout", "10m"}, rows: []limit{timed("egress-timeout", "a page that does not come", func(s *stand) {
			s.tool("web:fetch", `{"url":"http://site.test/slow"}`)
		})}},
		{both: append(embedded(), "--embedder-timeout", "10m"), rows: []limit{{"drain-timeout", "1s", 1 + 0.5, "seconds", "a query in flight at the stop; its tool has half a second more", func(s *stand) float64 {
			s.model.hold()
			s.atOnce(1, func(ctx context.Context, _ int) error {
				_, err := s.bridge().MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "x"})
				return err
			})
			settled(s.atModel)
			began := time.Now()
			_ = s.Stop()
			return time.Since(began).Seconds()
		}}}},
	}
}

// goneFrom counts the requests that the embedder's callers gave up.
func (s *stand) goneFrom() int {
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	return s.model.gone
}
