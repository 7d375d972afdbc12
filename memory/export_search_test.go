package memory

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/question"
)

// QueryDeep is Query with a limit beyond MaxLimit, for measures that look at
// long lists.
func (s *Store) QueryDeep(ctx context.Context, scope kv.Scope, q question.Question, limit int) (Answer, error) {
	asked, err := s.prepareQuery(ctx, []kv.Scope{scope}, q)
	if err != nil {
		return Answer{}, err
	}
	asked.asked.Limit = limit
	var result Answer
	err = s.view(ctx, func(view kv.Snapshot) error {
		result, err = asked.search(ctx, view, view.Sequences()[0])
		return err
	}, lexical.Ref(scope))
	return result, err
}
