package children

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Erasure is what becomes of children when a subject is erased. What a parent gave its child
// goes with the parent, or with the session that spawned it: the child is an agent like
// others then. What forks begin with goes as the prompt that they left would: with the
// memory that it shows. It needs the steps and results of a session.
func Erasure() erase.Owner {
	sort := func(tag byte, counted string, phase int, texts string) erase.Sort {
		return erase.Sort{Keyspace: kv.System, Kinds: "a", Tags: string(rune(tag)), Counted: counted, Phase: phase, Texts: texts}
	}
	return erase.Owner{
		Name: "bridge/children",
		Sorts: []erase.Sort{
			sort(tagChild, "", 1, "goals and results of children of others"),
			sort(tagAttached, "", 0, "names of servers"),
			sort(tagSpawned, "children", 2, ""),
			sort(tagGrant, "", 0, ""),
			sort(tagFork, "", 0, "what prompts of others' children begin with"),
			{Keyspace: kv.System, Kinds: "y", Lists: []string{string(liveList)}, Tags: string(rune(tagLive))},
		},
		Along: func(r *erase.Run, e erase.Entry) ([]kv.Pair, error) {
			if e.Tag != tagChild || e.Scope.Kind != kv.OwnerAgent || r.Subject.Narrowed() {
				return nil, nil
			}
			c, err := decode(e.Scope, e.Value)
			return []kv.Pair{{Key: spawnedKey(r.Scope, c.Number), Value: []byte(c.ID)}}, err
		},
		Begin: func(ctx context.Context, r *erase.Run) (erase.Change, error) {
			x := &eraser{Run: r, orphans: make(map[string]bool), forks: make(map[string]bool), shows: make(map[string]bool)}
			return x.change, x.learn(ctx)
		},
	}
}

// eraser is one run.
type eraser struct {
	*erase.Run
	orphans map[string]bool // children of what goes
	forks   map[string]bool // hashes of what prompts of the session's children begin with
	shows   map[string]bool // by their prefix, whether what forks begin with shows what goes
}

// learn notes the children that a session spawned.
func (x *eraser) learn(ctx context.Context) error {
	if len(x.Steps) == 0 {
		return nil
	}
	return erase.Each(ctx, x.From, kv.System, x.Scope.Key(tagSpawned), func(tail, value []byte) error {
		later := x.Place.Position > 0 && len(tail) == 8 && binary.BigEndian.Uint64(tail) > x.Subject.Step
		if !x.spawned(tail) && !later {
			return nil
		}
		child := kv.AgentScope(x.Scope.Tenant, string(value))
		found, err := x.From.Get(ctx, kv.System, childKey(child))
		if err != nil || found[0] == nil {
			return err
		}
		c, err := decode(child, found[0])
		if err != nil || x.Subject.Step == 0 {
			x.forks[c.Fork] = true
			return err
		}
		if c.Fork == "" || c.ParentSession != x.Place.Session {
			return nil
		}
		head, err := x.head(ctx, forkPrefix(x.Scope, c.Fork)) // which may say what the step said
		if x.Words.In(head) {
			x.forks[c.Fork] = true
		}
		return err
	})
}

// head is what forks begin with, in the form that the recorder gave it.
func (x *eraser) head(ctx context.Context, prefix []byte) (head []byte, err error) {
	err = erase.Each(ctx, x.From, kv.System, prefix, func(_, part []byte) error {
		head = append(head, part...)
		return nil
	})
	return head, err
}

// forked says whether a part of what forks begin with goes since it shows a memory that does.
func (x *eraser) forked(ctx context.Context, e erase.Entry) ([]byte, bool, error) {
	if x.Looks || !x.MayShow(e.Scope) || len(e.Tail) < sha256.Size {
		return e.Stays()
	}
	prefix := forkPrefix(e.Scope, string(e.Tail[:sha256.Size]))
	shows, known := x.shows[string(prefix)]
	if !known {
		head, err := x.head(ctx, prefix)
		if err != nil {
			return nil, false, err
		}
		var m storev1.ForkPart
		shows = wire.Unmarshal(head, &m) != nil || !m.UsersKnown || x.Subject.Kind != erase.User || slices.Contains(m.Users, x.Subject.ID)
		x.shows[string(prefix)] = shows
	}
	return e.Goes(shows, nil)
}

func (x *eraser) spawned(number []byte) bool {
	return len(number) == 8 && x.Steps[binary.BigEndian.Uint64(number)]
}

func (x *eraser) change(ctx context.Context, e erase.Entry) ([]byte, bool, error) {
	if e.Tag == tagFork && e.Scope.Kind == kv.OwnerAgent && (x.Subject.Kind == erase.User || x.Subject.Filter != "") {
		return x.forked(ctx, e)
	}
	if x.Subject.Kind != erase.Agent || x.Subject.Filter != "" {
		return e.Stays()
	}
	part := x.Subject.Narrowed()
	switch {
	case e.Scope.Kind == kv.OwnerSystem:
		return e.Goes(x.Subject.Is(erase.Agent, string(e.Tail)) || x.orphans[string(e.Tail)], nil)
	case e.Tag == tagAttached: // behind the child's entry
		return e.Goes(x.orphans[e.Scope.Owner], nil)
	case e.Tag == tagChild:
		c, err := decode(e.Scope, e.Value)
		byStep := x.Subject.Step != 0 && c.Parent == x.Subject.ID && x.Steps[c.Number]
		if err != nil || !byStep && !x.Subject.Of(c.Parent, c.ParentSession) {
			return e.Goes(false, err)
		}
		x.orphans[c.ID] = true
		return e.Goes(true, nil)
	case e.Tag == tagGrant: // what this agent may read of the subject's results
		owner, err := decodeGrant(e.Value)
		return e.Goes(err == nil && owner == x.Subject.ID && (!part || x.Refs[string(e.Tail)]), err)
	case e.Tag == tagSpawned && !part: // at the subject's parent
		return e.Goes(string(e.Value) == x.Subject.ID, nil)
	case e.Tag == tagSpawned:
		return e.Goes(x.Own(e) && x.spawned(e.Tail), nil)
	case e.Tag == tagFork:
		return e.Goes(part && x.Own(e) && len(e.Tail) >= sha256.Size && x.forks[string(e.Tail[:sha256.Size])], nil)
	}
	return e.Stays()
}
