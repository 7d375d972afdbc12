package observe

import (
	"maps"
	"sync"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Outcomes counts calls of tools by how they ended, whether anybody collects figures or not.
// The zero value is ready, nil counts nothing; all methods are safe for concurrent use.
type Outcomes struct {
	mu    sync.Mutex
	calls map[string]int64 // by outcome, of which there are few; guarded by mu
}

// All returns the calls by outcome.
func (o *Outcomes) All() map[string]int64 {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.calls)
}

// answered counts a call that was answered.
func (o *Outcomes) answered(answer any) {
	switch a := answer.(type) {
	case *loombridgev1.ToolResponse:
		o.add(nativeOutcome(a))
	case *loomv1pb.ToolResult:
		o.add(loomOutcome(a))
	}
}

// refused counts a call that ended with an error.
func (o *Outcomes) refused(request any, err error) {
	if _, ok := request.(*loombridgev1.ToolRequest); ok {
		o.add(refusedOutcome(err))
	}
}

func (o *Outcomes) add(outcome string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls = map[string]int64{}
	}
	o.calls[outcome]++
}
