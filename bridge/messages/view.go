package messages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultLimit is how many messages a list has that says nothing.
const DefaultLimit = 50

// Query says which of a target's messages are listed. The zero value is the first
// DefaultLimit of all.
type Query struct {
	// SessionID selects messages of this session; empty selects all, including messages
	// without a session.
	SessionID string
	// ParentTaskID selects messages that belong to a task; empty selects all.
	ParentTaskID string
	// After leaves those behind a Place; empty leaves all.
	After string
	// Limit is how many are returned, 0 for DefaultLimit.
	Limit int
}

// BoxView reads the messages of one moment. Safe for concurrent use.
type BoxView struct {
	from kv.Reader
	now  func() time.Time
}

// Foresee adds what List reads of an agent or node in any case.
func (b *Box) Foresee(along *kv.Reads, scope kv.Scope) { along.Get(kv.System, scope.Key(tagCounts)) }

// List returns the live messages of an agent or node, in their order. It reads past those
// that the query leaves out, so at most all that a box may have.
func (v BoxView) List(ctx context.Context, tenant, target string, q Query) ([]Message, error) {
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	scope := kv.AgentScope(tenant, target)
	counted, err := v.from.Get(ctx, kv.System, scope.Key(tagCounts))
	if err != nil {
		return nil, fmt.Errorf("messages: list: %w", err)
	}
	if counted[0] == nil {
		return nil, nil
	}
	now := v.now()
	var all []Message
	behind := kv.Prefix(scope.Key(tagMessage))
	if q.After != "" {
		behind.Start = append(scope.Key(tagMessage, []byte(q.After)), 0)
	}
	for pair, err := range v.from.Scan(ctx, kv.System, behind) {
		var m Message
		if err == nil {
			m, err = decode(pair.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("messages: list: %w", err)
		}
		if m.Expired(now) || q.SessionID != "" && m.SessionID != q.SessionID || q.ParentTaskID != "" && m.ParentTaskID != q.ParentTaskID {
			continue
		}
		if all = append(all, m); len(all) == q.Limit {
			break
		}
	}
	return all, nil
}

// Total counts the messages of all boxes, including expired ones that are not removed yet.
// It reads two keys of each agent.
func (b *Box) Total(ctx context.Context) (int, error) {
	total := 0
	for scope, err := range kv.Scopes(ctx, b.engine, kv.System) {
		if err != nil {
			return 0, fmt.Errorf("messages: count: %w", err)
		}
		if scope.Kind != kv.OwnerAgent {
			continue
		}
		counted, err := b.engine.Get(ctx, kv.System, scope.Key(tagCounts))
		if err != nil {
			return 0, fmt.Errorf("messages: count: %w", err)
		}
		c, err := decodeCounts(counted[0])
		if err != nil {
			return 0, err
		}
		total += c.total()
	}
	return total, nil
}

var errNoKey = errors.New("a key is malformed")

// Check reads the messages of a scope back: whether each can be read, stands where it
// should, and is counted. found is called for each fault; the error is only why the check
// could not go on.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	if scope.Kind != kv.OwnerAgent {
		return nil
	}
	have := make(counts)
	err := kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagMessage)), found, func(p kv.Pair) error {
		m, err := decode(p.Value)
		if err != nil {
			return err
		}
		have[m.Source]++
		if string(p.Key) != string(scope.Key(tagMessage, m.rank(), []byte(m.TaskID))) {
			return damaged("message "+m.TaskID, errNoKey)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagCounts)), found, func(p kv.Pair) error {
		c, err := decodeCounts(p.Value)
		if err == nil && c.total() != have.total() {
			err = fmt.Errorf("%w: messages: %d are counted, and %d there", kv.ErrDamaged, c.total(), have.total())
		}
		return err
	})
}
