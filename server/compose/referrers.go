package compose

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// idleEnd is how long nothing happens in a session, which nobody ended, before
// its blobs may go.
const idleEnd = 7 * 24 * time.Hour

// Tags and the few fields that are read of other packages' keys and values
// (memory/FORMAT.md, final).
const (
	tagLogEntry    = 'e'
	tagLogJournal  = 'f'
	tagLogHead     = 's'
	tagLogTask     = 't'
	tagRecord      = 'r'
	fieldLogTime   = 2
	fieldHeadEnded = 2
)

// referrers is who needs blobs: sessions that go on, and memory records. It
// looks for names in stored values as they are, so that whatever a later version
// writes there counts, too.
type referrers struct {
	now func() time.Time
}

var _ blob.Referrers = referrers{}

// Refs are the agent's log and its records.
func (referrers) Refs(scope kv.Scope) []kv.Ref {
	return []kv.Ref{{Keyspace: kv.Log, Scope: scope}, {Keyspace: kv.Records, Scope: scope}}
}

// Open tells whether the session was not ended, and something was recorded in it
// within the last week.
func (r referrers) Open(ctx context.Context, from blob.View, scope kv.Scope, sessionID string) (bool, error) {
	sessionID = cmp.Or(sessionID, session.DefaultSession)
	if ended, err := isEnded(ctx, from, scope, sessionID); ended || err != nil {
		return false, err
	}
	last := kv.Prefix(sessionPrefix(scope, sessionID))
	last.Reverse, last.Limit = true, 1
	for pair, err := range from.Scan(ctx, kv.Log, last) {
		if err != nil {
			return false, err
		}
		at, err := entryTime(pair.Value)
		return r.now().Sub(at) < idleEnd, err
	}
	return false, nil
}

// isEnded tells whether a session was ended, and nothing recorded in it since.
func isEnded(ctx context.Context, from blob.View, scope kv.Scope, id string) (bool, error) {
	heads, err := from.Get(ctx, kv.Log, kv.AppendEscaped(scope.Key(tagLogHead), id))
	if err != nil {
		return false, err
	}
	for f, err := range wire.Fields(heads[0]) {
		if err != nil {
			return false, err
		}
		if f.Number == fieldHeadEnded {
			return f.Value != 0, nil
		}
	}
	return false, nil
}

func sessionPrefix(scope kv.Scope, id string) []byte {
	return kv.AppendEscaped(scope.Key(tagLogEntry), id)
}

func journalPrefix(scope kv.Scope, id string) []byte {
	return kv.AppendEscaped(scope.Key(tagLogJournal), id)
}

func taskPrefix(scope kv.Scope, id string) []byte {
	return kv.AppendEscaped(scope.Key(tagLogTask), id)
}

func entryTime(value []byte) (time.Time, error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return time.Time{}, err
		}
		if f.Number == fieldLogTime {
			return f.Time(), nil
		}
	}
	return time.Time{}, nil
}

// Texts yields the entries of the agent's open sessions with their tasks and
// folds, those that were undone included, and its records.
func (r referrers) Texts(ctx context.Context, from blob.View, scope kv.Scope) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for id, err := range sessionIDs(ctx, from, scope) {
			if err != nil {
				yield(nil, err)
				return
			}
			open, err := r.Open(ctx, from, scope, id)
			if err != nil {
				yield(nil, err)
				return
			}
			if !open {
				continue
			}
			for _, prefix := range [][]byte{sessionPrefix(scope, id), journalPrefix(scope, id), taskPrefix(scope, id)} {
				if !values(ctx, from, kv.Log, prefix, yield) {
					return
				}
			}
		}
		values(ctx, from, kv.Records, scope.Key(tagRecord), yield)
	}
}

// sessionIDs yields the ids of the agent's sessions.
func sessionIDs(ctx context.Context, from blob.View, scope kv.Scope) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		all := kv.Prefix(scope.Key(tagLogEntry))
		prefix := len(all.Start)
		for found := true; found; {
			found = false
			for pair, err := range from.Scan(ctx, kv.Log, kv.Range{Start: all.Start, End: all.End, Limit: 1}) {
				if err != nil {
					yield("", err)
					return
				}
				id, _, err := kv.CutEscaped(pair.Key[prefix:])
				if !yield(id, err) || err != nil {
					return
				}
				all.Start, found = kv.After(sessionPrefix(scope, id)), true
			}
		}
	}
}

// values yields the values of a prefix and tells whether to go on.
func values(ctx context.Context, from blob.View, ks kv.Keyspace, prefix []byte, yield func([]byte, error) bool) bool {
	for pair, err := range from.Scan(ctx, ks, kv.Prefix(prefix)) {
		if !yield(pair.Value, err) || err != nil {
			return false
		}
	}
	return true
}

// Elsewhere yields the records of the tenant's users and spaces: agents save
// there, too.
func (referrers) Elsewhere(ctx context.Context, from blob.View, scope kv.Scope) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, kind := range []kv.OwnerKind{kv.OwnerUser, kv.OwnerSpace} {
			prefix := append([]byte(scope.Tenant), 0, byte(kind))
			if !values(ctx, from, kv.Records, prefix, yield) {
				return
			}
		}
	}
}
