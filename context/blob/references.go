package blob

import (
	"context"
	"encoding/hex"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
)

// Sessions knows the open sessions: they need the blobs that their steps have made and the
// blobs named in them. Its method must be safe for concurrent use.
type Sessions interface {
	// IsOpen reports whether a session of the owner is open. An empty id is the session
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
	mentions *mention.Reader
	sessions Sessions
	// open are the sessions that were asked for, found what patterns found.
	open  map[string]bool
	found map[mention.Pattern]finding
}

// finding is what a pattern found: somebody who needs what it names, or else sessions
// that are not open.
type finding struct {
	needed bool
	closed []string
}

func (c *collection) references(ctx context.Context, from kv.Getter) (*references, error) {
	mentions, err := mention.NewReader(ctx, from, c.scope)
	return &references{
		from: from, scope: c.scope, mentions: mentions, sessions: c.sessions,
		open: make(map[string]bool), found: make(map[mention.Pattern]finding),
	}, err
}

// isOpen reports whether a session is open.
func (r *references) isOpen(ctx context.Context, sessionID string) (bool, error) {
	open, known := r.open[sessionID]
	if known {
		return open, nil
	}
	open, err := r.sessions.IsOpen(ctx, r.from, r.scope, sessionID)
	r.open[sessionID] = open
	return open, err
}

// anyOpen reports whether one of some sessions is open.
func (r *references) anyOpen(ctx context.Context, sessions []string) (bool, error) {
	for _, id := range sessions {
		if open, err := r.isOpen(ctx, id); open || err != nil {
			return open, err
		}
	}
	return false, nil
}

// to reports whether somebody needs an entry: the open session of the step that made it,
// a record, or an open session that names it. Without one, closed are the sessions
// that would if they were open.
func (r *references) to(ctx context.Context, e *Entry) (needed bool, closed []string, err error) {
	number, made := step.ParseID(e.StepID)
	if made {
		if open, err := r.isOpen(ctx, e.SessionID); open || err != nil {
			return open, nil, err
		}
		closed = append(closed, e.SessionID)
	}
	for _, p := range mention.Patterns(e.Ref, number, append([]string{e.Path}, e.Aliases...)...) {
		f, known := r.found[p]
		if !known {
			if f, err = r.find(ctx, p); err != nil {
				return false, nil, err
			}
			r.found[p] = f
		}
		if f.needed {
			return true, nil, nil
		}
		closed = append(closed, f.closed...)
	}
	return false, closed, nil
}

func (r *references) find(ctx context.Context, p mention.Pattern) (f finding, err error) {
	if f.needed, err = r.mentions.Recorded(ctx, p); f.needed || err != nil {
		return f, err
	}
	for id, err := range r.mentions.Sessions(ctx, p) {
		if err != nil {
			return finding{}, err
		}
		if f.needed, err = r.isOpen(ctx, id); f.needed || err != nil {
			return f, err
		}
		f.closed = append(f.closed, id)
	}
	return f, nil
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
func Mentions() []mention.Sort {
	return []mention.Sort{{Keyspace: kv.Blobs, Tag: tagPath, Stage: func(tx *kv.Tx, scope kv.Scope, rest, value []byte) error {
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
