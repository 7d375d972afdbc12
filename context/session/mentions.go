package session

import (
	"context"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Defaults of Options.
const (
	DefaultCloseAfter = time.Hour
	DefaultEndAfter   = 7 * 24 * time.Hour
)

// IsOpen tells whether a session needs its blobs: it was not ended, and something was
// recorded in it within Options.EndAfter. An empty id is DefaultSession. What it reads by Get
// changes whenever the answer becomes true.
func (l *Log) IsOpen(ctx context.Context, from kv.Getter, scope kv.Scope, session string) (bool, error) {
	if session == "" {
		session = DefaultSession
	}
	values, err := from.Get(ctx, kv.Log, headKey(scope, session))
	if err != nil {
		return false, fmt.Errorf("session: read head: %w", err)
	}
	h, err := decodeHead(values[0])
	if err != nil || h.ended {
		return false, err
	}
	last := kv.Prefix(entryPrefix(scope, session))
	last.Reverse, last.Limit = true, 1
	for pair, err := range from.Scan(ctx, kv.Log, last) {
		if err != nil {
			return false, fmt.Errorf("session: read last entry: %w", err)
		}
		for f, err := range wire.Fields(pair.Value) {
			if err != nil {
				return false, damaged(err)
			}
			if f.Number == fieldTime {
				return !l.idle(f.Time(), l.endAfter), nil
			}
		}
	}
	return false, nil
}

// idle tells whether something was so long ago; a negative time is never over.
func (l *Log) idle(last time.Time, limit time.Duration) bool {
	return limit >= 0 && l.now().Sub(last) >= limit
}

// IsClosed tells whether a session is left out of listings (Summary.Closed). An empty id
// is DefaultSession.
func (l *Log) IsClosed(ctx context.Context, scope kv.Scope, session string) (bool, error) {
	sum, err := l.Summary(ctx, scope, session)
	return sum.Closed, err
}

// stageMentions stages the mentions of an entry, a task or an entry of the journal.
func stageMentions(tx *kv.Tx, scope kv.Scope, session string, value []byte) {
	mention.Stage(tx, kv.Ref{Keyspace: kv.Log, Scope: scope}, session, namesIn(value))
}

// namesIn returns the names of blobs in a stored value, all of which have their body
// in one field.
func namesIn(value []byte) []mention.Name {
	for f, err := range wire.Fields(value) {
		if err == nil && f.Number == fieldBody {
			return mention.In(f.Bytes)
		}
	}
	return nil
}

// Mentions are the sources of the mentions in the log.
func Mentions() []mention.Source {
	session := func(rest []byte) (string, error) {
		id, _, err := kv.CutEscaped(rest)
		return id, err
	}
	return []mention.Source{
		mention.Texts(kv.Log, tagEntry, namesIn, session),
		mention.Texts(kv.Log, tagJournal, namesIn, session),
		mention.Texts(kv.Log, tagTask, namesIn, session),
	}
}
