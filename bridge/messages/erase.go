package messages

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// tagAnswer is the tag under which the writer keeps that a task id was sent.
const tagAnswer = 'q'

// Erasing takes the messages of a sender, and those to it, out of the boxes of others, while
// their entries are copied in the order of their keys.
type Erasing struct {
	// Source is whose messages go. Required.
	Source string
	// Session limits them to messages sent in one session. Default: all go.
	Session string

	scope   kv.Scope
	tasks   map[string]bool // of the messages that went
	senders map[string]int  // how many of each went
}

// Erasure is what becomes of direct messages when a subject is erased.
func Erasure() erase.Owner {
	const others = "what others wrote to each other"
	return erase.Owner{
		Name: "bridge/messages",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "a", Tags: string(rune(tagMessage)), Counted: "messages", Phase: erase.Elsewhere, Texts: others},
			{Keyspace: kv.System, Kinds: "a", Tags: string([]byte{tagTask, tagCounts, tagExpiry, tagAnswer}), Phase: erase.Elsewhere, Texts: others},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			x := &Erasing{Source: r.Subject.ID, Session: r.Subject.Session}
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				if r.Subject.Kind != erase.Agent || r.Subject.Filter != "" || r.Subject.Step != 0 {
					return e.Stays()
				}
				return x.Change(e.Scope, e.Pair)
			}, nil
		},
	}
}

// Change says what becomes of an entry of an agent's scope in the keyspace of the system:
// its value, and whether it stays.
func (x *Erasing) Change(scope kv.Scope, p kv.Pair) (value []byte, keep bool, err error) {
	if scope != x.scope || x.tasks == nil {
		x.scope, x.tasks, x.senders = scope, make(map[string]bool), make(map[string]int)
	}
	_, rest, err := kv.SplitKey(p.Key)
	if err != nil || len(rest) == 0 {
		return p.Value, true, err
	}
	tail := string(rest[1:])
	switch rest[0] {
	case tagMessage:
		m, err := decode(p.Value)
		if err != nil || !x.goes(&m) {
			return p.Value, true, err
		}
		x.tasks[m.TaskID] = true
		x.senders[m.Source]++
		return nil, false, nil
	case tagCounts:
		c, err := decodeCounts(p.Value)
		_, sent := c[x.Source]
		if x.Session == "" {
			delete(c, x.Source)
		}
		if err != nil || len(x.senders) == 0 && (!sent || x.Session != "") {
			return p.Value, true, err
		}
		for sender, n := range x.senders {
			if c[sender] -= n; c[sender] <= 0 {
				delete(c, sender)
			}
		}
		return c.encode(slices.Sorted(maps.Keys(c))), len(c) > 0, nil
	case tagTask, tagAnswer:
		return p.Value, !x.tasks[tail], nil
	case tagExpiry:
		return p.Value, len(tail) < timeBytes+rankBytes || !x.tasks[tail[timeBytes+rankBytes:]], nil
	}
	return p.Value, true, nil
}

// goes reports whether a message is of the sender, or to it in the box of a node.
func (x *Erasing) goes(m *Message) bool {
	if x.Session != "" {
		return m.Source == x.Source && m.SessionID == x.Session
	}
	return m.Source == x.Source || m.Target == x.Source
}

// maxErased bounds the messages that one commit of Erase takes out of a box.
const maxErased = 64

// Erase takes the messages of a sender out of the boxes of all others of a tenant, or those
// of one of its sessions, in small commits, and returns how many those were.
func (b *Box) Erase(ctx context.Context, tenant, source, session string) (erased int, err error) {
	for scope, err := range kv.ScopesIn(ctx, b.engine, kv.System, kv.TenantRange(tenant)) {
		if err != nil {
			return erased, fmt.Errorf("messages: erase: %w", err)
		}
		if scope.Kind != kv.OwnerAgent || scope.Owner == source && session == "" {
			continue
		}
		for more := true; more; {
			n, err := b.eraseSome(ctx, scope, Erasing{Source: source, Session: session})
			if erased += n; err != nil {
				return erased, fmt.Errorf("messages: erase in the box of %q: %w", scope.Owner, err)
			}
			more = n == maxErased
		}
	}
	return erased, nil
}

// eraseSome takes up to maxErased messages out of a box.
func (b *Box) eraseSome(ctx context.Context, scope kv.Scope, of Erasing) (int, error) {
	var found []kv.Pair
	for p, err := range b.engine.Scan(ctx, kv.System, kv.Prefix(scope.Key(tagMessage))) {
		if err != nil {
			return 0, err
		}
		_, keep, err := of.Change(scope, p)
		if err != nil {
			return 0, err
		}
		if keep {
			continue
		}
		if found = append(found, p); len(found) == maxErased {
			break
		}
	}
	if len(found) == 0 {
		return 0, nil
	}
	box := kv.Ref{Keyspace: kv.System, Scope: scope}
	return len(found), b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{box}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		c, err := b.countsOf(ctx, tx, box)
		if err != nil {
			return err
		}
		for _, p := range found {
			m, err := decode(p.Value)
			if err == nil {
				err = b.remove(ctx, tx, scope, c, bytes.TrimPrefix(p.Key, scope.Key(tagMessage)))
			}
			if err != nil {
				return err
			}
			tx.Delete(kv.System, kv.AnswerKey(box, m.TaskID))
		}
		putCounts(tx, scope, c)
		return nil
	}})
}
