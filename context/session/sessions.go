package session

import (
	"context"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Sessions yields the ids of the scope's sessions that have an entry, in order of
// their bytes. An error comes last, with an empty id.
func (l *Log) Sessions(ctx context.Context, scope kv.Scope) iter.Seq2[string, error] {
	return l.sessions(ctx, scope.Key(tagEntry))
}

// TaskSessions is Sessions for those that have a task.
func (l *Log) TaskSessions(ctx context.Context, scope kv.Scope) iter.Seq2[string, error] {
	return l.sessions(ctx, scope.Key(tagTask))
}

// sessions reads one key of each session under a prefix.
func (l *Log) sessions(ctx context.Context, prefix []byte) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		left := kv.Prefix(prefix)
		left.Limit = 1
		for found := true; found; {
			found = false
			for pair, err := range l.engine.Scan(ctx, kv.Log, left) {
				id := ""
				if err == nil {
					id, _, err = kv.CutEscaped(pair.Key[len(prefix):])
				}
				if err != nil {
					yield("", fmt.Errorf("session: read sessions: %w", err))
					return
				}
				if !yield(id, nil) {
					return
				}
				left.Start, found = kv.After(kv.AppendEscaped(append([]byte(nil), prefix...), id)), true
			}
		}
	}
}
