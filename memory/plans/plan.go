package plans

import (
	"context"
	"math"
	"time"
)

// Plan is what an agent means to do. Everything in it is the caller's and kept
// as given.
type Plan struct {
	// TimestampMillis is when the plan was made, in ms since 1970.
	TimestampMillis int64
	// Symbol is what it is about, Action what to do with it.
	Symbol, Action string
	// Confidence is from 0 to 1 by custom.
	Confidence float32
	// Reasoning says why, Method how it was found.
	Reasoning string
	// Hash binds executions to the plan; it may be empty and need not be unique.
	Hash   string
	Method string
	// Metadata may be nil, and is when it was empty.
	Metadata map[string]string
}

// The window of FindDuplicate.
const (
	// MinDuplicateWindow is the least; existing agents rely on it.
	MinDuplicateWindow = 60 * time.Second
	// maxWindowSeconds is the most; in ns it is still a time.Duration.
	maxWindowSeconds = math.MaxInt32
)

// SavePlan appends a plan to the session. A plan over MaxPlanBytes is a
// *SizeError.
func (s *Store) SavePlan(ctx context.Context, tenant, session string, p Plan) error {
	value := encodePlan(p)
	if len(value) > MaxPlanBytes {
		return &SizeError{What: "plan", Size: len(value), Limit: MaxPlanBytes}
	}
	return wrap("save plan", s.append(ctx, tenant, session, plans, value))
}

// RecentPlans returns the plans with exactly that symbol, the last appended
// first: as many as limit says, at least one and at most MaxPlans. An empty
// symbol finds plans without one. It returns nil when there are none.
func (s *Store) RecentPlans(ctx context.Context, tenant, session, symbol string, limit int) ([]Plan, error) {
	limit = min(max(limit, 1), MaxPlans)
	left := s.room()
	var recent []Plan
	for value, err := range s.entries(ctx, tenant, session, plans, newestFirst) {
		var p Plan
		if err == nil {
			p, err = decodePlan(value)
		}
		if err == nil && p.Symbol == symbol {
			recent, err = append(recent, p), left.take(len(value))
		}
		if err != nil {
			return nil, wrap("read plans", err)
		}
		if len(recent) == limit {
			break
		}
	}
	return recent, nil
}

// FindDuplicate returns the first appended plan of the session that has p's
// symbol and action and whose timestamp is less than the window away from p's,
// before or after; and how far away it is. The window is at least
// MinDuplicateWindow and at most 68 years. False means that there is none.
func (s *Store) FindDuplicate(ctx context.Context, tenant, session string, p Plan, windowSeconds int) (Plan, time.Duration, bool, error) {
	window := max(MinDuplicateWindow, time.Duration(min(windowSeconds, maxWindowSeconds))*time.Second)
	for value, err := range s.entries(ctx, tenant, session, plans, oldestFirst) {
		var other Plan
		if err == nil {
			other, err = decodePlan(value)
		}
		if err != nil {
			return Plan{}, 0, false, wrap("find duplicate", err)
		}
		apart := millisBetween(p.TimestampMillis, other.TimestampMillis)
		if other.Symbol == p.Symbol && other.Action == p.Action && apart < uint64(window.Milliseconds()) {
			return other, time.Duration(apart) * time.Millisecond, true, nil
		}
	}
	return Plan{}, 0, false, nil
}

// millisBetween is how far two timestamps lie apart. Unsigned, it is right for
// any two.
func millisBetween(a, b int64) uint64 {
	if a < b {
		a, b = b, a
	}
	return uint64(a) - uint64(b)
}
