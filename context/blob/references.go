package blob

import (
	"context"
	"encoding/hex"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
)

// Sessions knows which sessions are open: those need what their steps have made and
// what is named in them. Its method must be safe for concurrent use.
type Sessions interface {
	// IsOpen tells whether a session of the owner is open. An empty id is the session
	// of callers that name none. It may read other keys than by from.Get only if one
	// that it reads so changes whenever the answer becomes true.
	IsOpen(ctx context.Context, from kv.Getter, scope kv.Scope, sessionID string) (bool, error)
}

// allOpen is a world whose sessions never end.
type allOpen struct{}

func (allOpen) IsOpen(context.Context, kv.Getter, kv.Scope, string) (bool, error) { return true, nil }

// references knows which blobs of an owner are referred to, in one look at the store.
type references struct {
	from     kv.Getter
	scope    kv.Scope
	mentions mention.Reader
	sessions Sessions
	// open are the sessions that were asked for, found the patterns.
	open  map[string]bool
	found map[mention.Pattern]bool
}

func (c *collection) references(from kv.Getter) *references {
	return &references{
		from: from, scope: c.scope, mentions: mention.NewReader(from, c.scope), sessions: c.sessions,
		open: make(map[string]bool), found: make(map[mention.Pattern]bool),
	}
}

// isOpen tells whether a session is open.
func (r *references) isOpen(ctx context.Context, sessionID string) (bool, error) {
	open, known := r.open[sessionID]
	if known {
		return open, nil
	}
	open, err := r.sessions.IsOpen(ctx, r.from, r.scope, sessionID)
	r.open[sessionID] = open
	return open, err
}

// made tells whether the step that made an entry is one of an open session.
func (r *references) made(ctx context.Context, e *Entry) (bool, error) {
	if e.StepID == "" {
		return false, nil
	}
	return r.isOpen(ctx, e.SessionID)
}

// named tells whether a record or an open session names an entry.
func (r *references) named(ctx context.Context, e *Entry) (bool, error) {
	number, _ := step.ParseID(e.StepID)
	for _, p := range mention.Patterns(e.Ref, number, append([]string{e.Path}, e.Aliases...)...) {
		found, known := r.found[p]
		if !known {
			var err error
			if found, err = r.find(ctx, p); err != nil {
				return false, err
			}
			r.found[p] = found
		}
		if found {
			return true, nil
		}
	}
	return false, nil
}

func (r *references) find(ctx context.Context, p mention.Pattern) (bool, error) {
	found, err := r.mentions.Recorded(ctx, p)
	if found || err != nil {
		return found, err
	}
	for session, err := range r.mentions.Sessions(ctx, p) {
		if err != nil {
			return false, err
		}
		if open, err := r.isOpen(ctx, session); open || err != nil {
			return open, err
		}
	}
	return false, nil
}

// watching is a transaction that is refused if what was read by Get changes.
type watching struct{ *kv.Tx }

func (w watching) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		var err error
		if values[i], err = w.Watch(ctx, ks, key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Mentions are the sources of the keys from blobs to the entries that lead to them.
func Mentions() []mention.Source {
	return []mention.Source{{Keyspace: kv.Blobs, Tag: tagPath, Stage: func(tx *kv.Tx, scope kv.Scope, rest, value []byte) error {
		e, err := decodeEntry(string(rest), value)
		if err != nil {
			return err
		}
		hash, err := hex.DecodeString(e.Ref)
		if err != nil {
			return err
		}
		tx.Put(kv.Blobs, append(refPrefix(scope, hash), rest...), nil)
		return nil
	}}}
}
