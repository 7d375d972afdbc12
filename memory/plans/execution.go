package plans

import (
	"context"
	"slices"
)

// The statuses that Stats counts by, and that of an execution that MarkExecuted
// makes up.
const (
	StatusSuccess  = "success"
	StatusError    = "error"
	StatusExecuted = "executed"
)

// MaxRecent is how many executions Stats returns.
const MaxRecent = 10

// Execution is what came of a plan. Everything in it is the caller's and kept as
// given.
type Execution struct {
	// TimestampMillis is when it happened, in ms since 1970.
	TimestampMillis int64
	// PlanHash is the Hash of the plan.
	PlanHash       string
	Symbol, Action string
	Confidence     float32
	// Status is free text; see StatusSuccess.
	Status   string
	Executed bool
	OrderID  string
	// OrderSizeUSDT is the size of the order.
	OrderSizeUSDT float32
	ErrorMessage  string
}

// Stats counts the executions of a session.
type Stats struct {
	// Total is how many there are, whatever their status.
	Total int
	// Successful have StatusSuccess, Failed have StatusError.
	Successful, Failed int
	// WinRate is Successful by Total; 0 when there are none.
	WinRate float32
	// Recent are the last MaxRecent, the last appended first.
	Recent []Execution
}

// MarkExecuted appends an execution to the session: e as it is, its own PlanHash
// included, or, if e is nil, one that says that the plan with planHash was
// executed now. An execution over MaxExecutionBytes is a *SizeError.
func (s *Store) MarkExecuted(ctx context.Context, tenant, session, planHash string, e *Execution) error {
	if e == nil {
		e = &Execution{TimestampMillis: s.now().UnixMilli(), PlanHash: planHash, Status: StatusExecuted, Executed: true}
	}
	value := encodeExecution(*e)
	if len(value) > MaxExecutionBytes {
		return &SizeError{What: "execution", Size: len(value), Limit: MaxExecutionBytes}
	}
	return wrap("mark executed", s.append(ctx, tenant, session, executions, value))
}

// FindExecution returns the first appended execution that the session still has
// with that hash, whatever its status; false when there is none.
func (s *Store) FindExecution(ctx context.Context, tenant, session, planHash string) (Execution, bool, error) {
	for value, err := range s.entries(ctx, tenant, session, executions, oldestFirst) {
		var e Execution
		if err == nil {
			e, err = decodeExecution(value)
		}
		if err != nil {
			return Execution{}, false, wrap("find execution", err)
		}
		if e.PlanHash == planHash {
			return e, true, nil
		}
	}
	return Execution{}, false, nil
}

// Stats counts the executions with exactly that symbol, or all of the session if
// it is empty.
func (s *Store) Stats(ctx context.Context, tenant, session, symbol string) (Stats, error) {
	var stats Stats
	for value, err := range s.entries(ctx, tenant, session, executions, oldestFirst) {
		var e Execution
		if err == nil {
			e, err = decodeExecution(value)
		}
		if err != nil {
			return Stats{}, wrap("count executions", err)
		}
		if symbol == "" || e.Symbol == symbol {
			stats.count(e)
		}
	}
	slices.Reverse(stats.Recent)
	if stats.Total > 0 {
		stats.WinRate = float32(stats.Successful) / float32(stats.Total)
	}
	return stats, nil
}

// count counts the next execution; of Recent it keeps the last ones in order.
func (s *Stats) count(e Execution) {
	s.Total++
	switch e.Status {
	case StatusSuccess:
		s.Successful++
	case StatusError:
		s.Failed++
	}
	if len(s.Recent) == MaxRecent {
		s.Recent = slices.Delete(s.Recent, 0, 1)
	}
	s.Recent = append(s.Recent, e)
}
