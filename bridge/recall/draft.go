package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// maxRunEntries bounds the entries of a session that are read for a playbook: its newest.
const maxRunEntries = 4096

// RunLog is where Drafts read what was done. *session.Log is one.
type RunLog interface {
	Before(ctx context.Context, scope kv.Scope, sessionID string, position uint64) iter.Seq2[session.Entry, error]
	Working(ctx context.Context, scope kv.Scope, sessionID string) (working.Working, error)
}

// Drafts make playbooks of sessions that went well, one of each, for somebody to review.
// All methods are safe for concurrent use. All fields but Now are required.
type Drafts struct {
	Log   RunLog
	Store interface {
		Save(ctx context.Context, scope kv.Scope, r record.Record, requestID string) (record.Record, error)
		GetByKey(ctx context.Context, scope kv.Scope, key string) (record.Record, error)
	}
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Learn makes a draft of a session that got a reward, and returns the id of its record; the
// one there is if there is one, and none if the session did not go well enough, or no model
// said what it was about.
func (d *Drafts) Learn(ctx context.Context, scope kv.Scope, sessionID string, reward float64, taskType string) (id string, err error) {
	if reward < playbook.MinReward {
		return "", nil
	}
	sessionID = cmp.Or(sessionID, session.DefaultSession)
	sum := sha256.Sum256([]byte(sessionID))
	key := "playbook/auto/" + hex.EncodeToString(sum[:16])
	known, err := d.Store.GetByKey(ctx, scope, key)
	if err == nil || !errors.Is(err, memory.ErrNotFound) {
		return known.ID, err
	}
	run, err := d.run(ctx, scope, sessionID)
	if err != nil {
		return "", fmt.Errorf("recall: draft a playbook: %w", err)
	}
	run.Reward, run.TaskType = reward, taskType
	entry, ok := playbook.DraftOf(run)
	if !ok {
		return "", nil
	}
	metadata, err := json.Marshal(entry)
	if err != nil {
		return "", err // of plain data: never
	}
	saved, err := d.Store.Save(ctx, scope, record.Record{
		Text: entry.Description, Kind: KindPlaybook, Key: key, SessionID: sessionID, Metadata: metadata, Tier: record.LongTerm,
	}, "")
	if errors.Is(err, memory.ErrExists) { // somebody else was first
		saved, err = d.Store.GetByKey(ctx, scope, key)
	}
	return saved.ID, err
}

// run reads what was done in a session.
func (d *Drafts) run(ctx context.Context, scope kv.Scope, sessionID string) (*playbook.Run, error) {
	now := time.Now
	if d.Now != nil {
		now = d.Now
	}
	run := &playbook.Run{SessionID: sessionID, End: now()}
	at, err := d.Log.Working(ctx, scope, sessionID)
	if err != nil {
		return nil, err
	}
	read, first := 0, ""
	for e, err := range d.Log.Before(ctx, scope, sessionID, 0) {
		if err != nil {
			return nil, err
		}
		if read++; read > maxRunEntries {
			break
		}
		switch {
		case e.Step != nil:
			run.Calls = append(run.Calls, playbook.Made{Tool: e.Step.ToolName, Purpose: e.Step.Thought, Succeeded: e.Step.Outcome == step.Succeeded})
		case e.Message != nil && e.Message.Role == session.User && !e.Message.Observation && e.Message.Content != "":
			first = e.Message.Content
		}
	}
	slices.Reverse(run.Calls)
	run.Goal = cmp.Or(at.Goal, first)
	return run, nil
}
