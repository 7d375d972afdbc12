package hand

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// While the steps of one agent are read, calls of others go on, and those of the same one
// share the reading.
func TestStepsOfOneAgentAreReadBesideOthers(t *testing.T) {
	var counts stepCounts
	slow, quick := kv.AgentScope("t", "slow"), kv.AgentScope("t", "quick")
	const limit = 10
	reading, read := make(chan struct{}), make(chan struct{})
	var reads, refused atomic.Int64
	var running sync.WaitGroup
	for range 2 * limit {
		running.Go(func() {
			err := counts.take(slow, limit, func() (uint64, error) {
				if reads.Add(1) == 1 {
					close(reading)
				}
				<-read
				return limit / 2, nil
			})
			var over *tools.AgentLimitError
			if errors.As(err, &over) {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	<-reading
	for range 3 {
		if err := counts.take(quick, limit, func() (uint64, error) { return 0, nil }); err != nil {
			t.Error(err)
		}
		counts.done(quick, true)
	}
	close(read)
	running.Wait()
	if reads.Load() != 1 || refused.Load() != 2*limit-limit/2 {
		t.Errorf("%d readings and %d of %d calls refused, want 1 and %d", reads.Load(), refused.Load(), 2*limit, 2*limit-limit/2)
	}
	for range limit / 2 {
		counts.done(slow, false)
	}
	if n := len(counts.agents); n != 0 {
		t.Errorf("%d agents without calls are kept", n)
	}
	failure := errors.New("the store is away")
	if err := counts.take(slow, limit, func() (uint64, error) { return 0, failure }); !errors.Is(err, failure) || len(counts.agents) != 0 {
		t.Errorf("got %v, %d agents kept", err, len(counts.agents))
	}
}
