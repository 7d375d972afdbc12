package tiers

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Forgetting ends the short-term memory of sessions that do not keep it when a server
// starts again: their offloaded results, L2 and L3.
type Forgetting struct {
	// Tiers have L2 and L3, Blobs the offloaded results.
	Tiers *Tiers
	Blobs *blob.Store
	// All says that sessions without their own settings forget it; Forgets reports whether
	// a session with settings does.
	All     bool
	Forgets func(ctx context.Context, scope kv.Scope, sessionID string) (bool, error)
}

// Forgotten is how much of it there was.
type Forgotten struct{ Results, Tasks int }

// Run deletes the task tiers and results of earlier runs. Call it before the server serves.
// The log stays, and so does everything promoted to long-term memory, archived, pinned,
// marked as important or named elsewhere; a deleted result reads as collected. After an
// interruption the next run goes on.
func (f Forgetting) Run(ctx context.Context) (Forgotten, error) {
	var all Forgotten
	for scope, err := range f.Tiers.log.Scopes(ctx) {
		if err != nil {
			return all, err
		}
		gone, err := f.sessions(ctx, scope)
		if err != nil {
			return all, fmt.Errorf("tiers: forget %s: %w", scope, err)
		}
		if len(gone) == 0 {
			continue
		}
		for id := range gone { // L2 and L3 name results
			tasks, err := f.tasks(ctx, sessionKey{scope, id})
			if all.Tasks += tasks; err != nil {
				return all, fmt.Errorf("tiers: forget %s: %w", scope, err)
			}
		}
		results, err := f.Blobs.Forget(ctx, scope, gone)
		if all.Results += results; err != nil {
			return all, err
		}
	}
	return all, nil
}

// sessions returns the sessions of an owner that forget.
func (f Forgetting) sessions(ctx context.Context, scope kv.Scope) (map[string]bool, error) {
	gone := make(map[string]bool)
	sets := []iter.Seq2[string, error]{f.Tiers.log.ConfiguredSessions(ctx, scope, "")}
	if f.All {
		sets = append(sets, f.Tiers.log.Sessions(ctx, scope, ""), f.Tiers.log.TaskSessions(ctx, scope, ""))
	}
	for _, ids := range sets {
		for id, err := range ids {
			if err != nil {
				return nil, err
			}
			if gone[id], err = f.Forgets(ctx, scope, id); err != nil {
				return nil, err
			}
			if !gone[id] {
				delete(gone, id)
			}
		}
	}
	return gone, nil
}

// ForgetSession deletes L2 and L3 of a session, except pinned records.
func (t *Tiers) ForgetSession(ctx context.Context, scope kv.Scope, session string) error {
	_, err := Forgetting{Tiers: t}.tasks(ctx, sessionKey{scope, session})
	return err
}

// tasks deletes L2 and L3 of a session.
func (f Forgetting) tasks(ctx context.Context, p sessionKey) (deleted int, err error) {
	for _, tier := range []int{tierWorking, tierSummary} {
		members, err := f.Tiers.members(ctx, p, tier)
		if err != nil {
			return deleted, err
		}
		for i := range members {
			if members[i].Pinned {
				continue
			}
			_, err := f.Tiers.store.Delete(ctx, p.scope, memory.Deletion{ID: members[i].ID}, "")
			if err != nil && !errors.Is(err, memory.ErrNotFound) {
				return deleted, err
			}
			deleted++
		}
	}
	return deleted, nil
}
