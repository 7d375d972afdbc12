package kv

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// turn is the right to a ref. It exists while a call holds or awaits it.
type turn struct {
	busy  chan struct{} // holds one token
	users int
}

// canonical sorts and deduplicates refs and names the set.
func canonical(refs []Ref) ([]Ref, string) {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, compareRefs)
	refs = slices.Compact(refs)
	var id []byte
	for _, r := range refs {
		id = r.Scope.AppendPrefix(append(id, byte(r.Keyspace)))
	}
	return refs, string(id)
}

func compareRefs(a, b Ref) int {
	return cmp.Or(
		cmp.Compare(a.Keyspace, b.Keyspace),
		strings.Compare(a.Scope.Tenant, b.Scope.Tenant),
		cmp.Compare(a.Scope.Kind, b.Scope.Kind),
		strings.Compare(a.Scope.Owner, b.Scope.Owner),
	)
}

// acquire waits for the turn at each ref, or until ctx ends. The refs are
// sorted, so two queues never wait for each other.
func (w *Writer) acquire(ctx context.Context, refs []Ref) error {
	for i, ref := range refs {
		w.mu.Lock()
		t := w.turns[ref]
		if t == nil {
			t = &turn{busy: make(chan struct{}, 1)}
			w.turns[ref] = t
		}
		t.users++
		w.mu.Unlock()
		select {
		case t.busy <- struct{}{}:
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			w.leave(ref)
			w.release(refs[:i])
			return ctx.Err()
		}
	}
	return nil
}

// release gives the turn at each ref to the next who waits. The caller holds
// mu.
func (w *Writer) release(refs []Ref) {
	for _, ref := range refs {
		<-w.turns[ref].busy
		w.leave(ref)
	}
}

// leave counts a user of a ref's turn out. The caller holds mu.
func (w *Writer) leave(ref Ref) {
	t := w.turns[ref]
	if t.users--; t.users == 0 {
		delete(w.turns, ref)
	}
}
