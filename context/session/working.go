package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Working returns what the agent is at in a session; empty for one without
// of.
func (l *Log) Working(ctx context.Context, scope kv.Scope, session string) (working.Working, error) {
	return readOne(ctx, l, scope, session, "working state", workingKey, decodeWorking)
}

// WorkingUpdate changes what an agent is at.
type WorkingUpdate struct {
	Change working.Change
	// Known are the names of skills that the agent has in addition to the ones that the
	// session declares.
	Known []string
	// RequestID makes the call safe to repeat.
	RequestID string
	// Count counts tokens, for the bound of what prompts show; nil counts four bytes as
	// one.
	Count func(text string) int
}

// UpdateWorking changes what the agent is at in a session, and returns it. To make a skill
// active, or not, that is unknown is an *invalid.Error, as is a change that breaks a rule;
// one that makes it longer than working.MaxTokens is working.ErrTooLarge. A request
// id makes the call safe to repeat: the same id and change again give the first answer
// and change nothing, another change is kv.ErrRequestReused.
func (l *Log) UpdateWorking(ctx context.Context, scope kv.Scope, session string, u WorkingUpdate) (working.Working, error) {
	change := u.Change
	session, err := sessionID(session)
	if err != nil {
		return working.Working{}, err
	}
	if err := change.Check(); err != nil {
		return working.Working{}, err
	}
	var after working.Working
	stage := func(ctx context.Context, tx *kv.Tx) ([]byte, error) {
		before, last, err := l.beforeChange(ctx, tx, scope, session, &change, u.Known)
		if err != nil {
			return nil, err
		}
		w := before.With(change, l.now(), last)
		if err := w.Check(); err != nil {
			return nil, err
		}
		if err := tooLong(&w, &change, u.Count); err != nil {
			return nil, err
		}
		value := working.EncodeChanged(w, l.now())
		tx.Put(kv.Log, workingKey(scope, session), value)
		return value, nil
	}
	// A change is plain data, so it has a JSON text.
	content, _ := json.Marshal(change)
	err = l.once(ctx, scope, u.RequestID, requestDigest("working", session, content), stage, func(answer []byte) error {
		after, err = decodeWorking(answer)
		return err
	})
	return after, wrap("update working state", err)
}

// tooLong returns working.ErrTooLarge if a change by the agent itself makes what prompts
// show too long.
func tooLong(w *working.Working, change *working.Change, count func(string) int) error {
	if !change.Grows() {
		return nil
	}
	if count == nil {
		count = func(s string) int { return (len(s) + 3) / 4 }
	}
	if n := count(w.Text(working.Figures{}, true, count)); n > working.MaxTokens {
		return fmt.Errorf("%w: it would take %d tokens, over %d", working.ErrTooLarge, n, working.MaxTokens)
	}
	return nil
}

// beforeChange is the working state, and the place of the log's last entry, if all skills that
// are to become active, or not, are known. One that is active may always be put away: its
// record may have gone.
func (l *Log) beforeChange(ctx context.Context, tx *kv.Tx, scope kv.Scope, session string, change *working.Change, known []string) (w working.Working, last uint64, err error) {
	values, err := tx.Get(ctx, kv.Log, workingKey(scope, session), configKey(scope, session), headKey(scope, session))
	if err != nil {
		return w, 0, err
	}
	if w, err = decodeWorking(values[0]); err != nil {
		return w, 0, err
	}
	c, err := decodeConfig(values[1])
	if err != nil {
		return w, 0, err
	}
	log, err := decodeHead(values[2])
	if err != nil {
		return w, 0, err
	}
	for _, s := range c.Over(l.defaults).Skills() {
		known = append(known[:len(known):len(known)], s.Name)
	}
	if err := allKnown("activate", change.Activate, known); err != nil {
		return w, 0, err
	}
	return w, log.last, allKnown("deactivate", change.Deactivate, append(known[:len(known):len(known)], w.Active...))
}

// allKnown returns an *invalid.Error for the first name that is not known.
func allKnown(field string, names, known []string) error {
	for i, name := range names {
		if !slices.Contains(known, name) {
			return invalid.Field(ErrInvalid, fmt.Sprintf("%s[%d]", field, i), "is %q, which is neither a skill of the session nor a record of the kind skill", name)
		}
	}
	return nil
}

// Skills returns the skills that the settings declare. Callers must not change them.
func (c Config) Skills() []settings.Skill {
	if c.Prompt == nil {
		return nil
	}
	return c.Prompt.Skills
}

func decodeWorking(value []byte) (working.Working, error) {
	w, err := working.Decode(value)
	if err != nil {
		return working.Working{}, damaged(err)
	}
	return w, nil
}
