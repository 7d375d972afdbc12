package memory

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// What is tested by itself.
var (
	DatesIn        = datesIn
	ToldBy         = toldBy
	AskedFor       = askedFor
	AsksForSeveral = asksForSeveral
	AsksForCurrent = asksForCurrent
)

// QueryDeep is Query with a limit beyond MaxLimit, for measures that look at
// long lists.
func (s *Store) QueryDeep(ctx context.Context, scope kv.Scope, q Query, limit int) (Result, error) {
	asked, err := s.prepareQuery(ctx, []kv.Scope{scope}, q)
	if err != nil {
		return Result{}, err
	}
	asked.question.Limit = limit
	var result Result
	err = s.view(ctx, func(view kv.Snapshot) error {
		result, err = asked.search(ctx, view)
		return err
	})
	return result, err
}
