package blob

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Forget deletes the owner's blobs that were made in some sessions, expired or not, and
// returns how many paths it deleted. It keeps blobs that are in long-term memory, archived,
// marked as important, or named by a memory record or by an open session other than those.
// It works in small commits, as Collect does. Call it before the server serves.
func (s *Store) Forget(ctx context.Context, scope kv.Scope, gone map[string]bool) (int, error) {
	c := collection{store: s, scope: scope, sessions: others{gone, s.opts.Sessions}}
	for after, more := "", true; more; {
		look, err := c.references(ctx, s.engine)
		if err != nil {
			return int(c.done.Entries), err
		}
		var free []candidate
		seen := 0
		for e, err := range entries(ctx, s.engine, scope, after, maxSeen) {
			if err != nil {
				return int(c.done.Entries), err
			}
			seen, after = seen+1, e.Home()
			if !gone[e.SessionID] || !e.shortTerm() {
				continue
			}
			needed, closed, err := look.to(ctx, &e)
			if err != nil {
				return int(c.done.Entries), err
			}
			if !needed {
				free = append(free, candidate{e, closed})
			}
		}
		more = seen == maxSeen
		for some := range slices.Chunk(free, maxDeleted) {
			if err := c.forget(ctx, some); err != nil {
				return int(c.done.Entries), fmt.Errorf("blob: forget %s: %w", scope, err)
			}
		}
	}
	return int(c.done.Entries), nil
}

// shortTerm reports whether nothing keeps an entry beyond its session.
func (e *Entry) shortTerm() bool {
	return e.Tier != LongTerm && e.Archive.Category == "" && !e.Important
}

// forget deletes, in one commit, the entries of a batch that are still what they were.
func (c *collection) forget(ctx context.Context, batch []candidate) error {
	var planned plan
	err := c.store.writer.Do(ctx, kv.Request{Refs: []kv.Ref{c.store.Ref(c.scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		var still []Entry
		for i := range batch {
			now, err := readEntry(ctx, tx, c.scope, batch[i].Home())
			if errors.Is(err, ErrNotFound) || err == nil && (now.Ref != batch[i].Ref || !now.shortTerm()) {
				continue
			}
			if err != nil {
				return err
			}
			still = append(still, now)
		}
		var err error
		if planned, err = c.plan(ctx, tx, still); err != nil {
			return err
		}
		return c.stage(ctx, tx, planned)
	}})
	if err == nil {
		c.done.add(planned)
	}
	return err
}

// others is a world in which some sessions are over.
type others struct {
	gone     map[string]bool
	sessions Sessions
}

func (o others) IsOpen(ctx context.Context, from kv.Getter, scope kv.Scope, sessionID string) (bool, error) {
	if o.gone[sessionID] {
		return false, nil
	}
	if o.sessions == nil {
		return true, nil
	}
	return o.sessions.IsOpen(ctx, from, scope, sessionID)
}
