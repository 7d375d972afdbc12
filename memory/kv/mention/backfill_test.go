package mention_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// dying is an engine whose commits fail from some point on, as those of a process that
// was killed are never made.
type dying struct {
	kv.Engine
	left int
}

func (d *dying) Commit(ctx context.Context, c kv.Commit) error {
	if d.left--; d.left < 0 {
		return kv.ErrFull
	}
	return d.Engine.Commit(ctx, c)
}

func sources() []mention.Sort {
	id := func(rest []byte) (string, error) { return string(rest), nil }
	unreadable := func([]byte) (string, error) { return "", errors.New("unreadable") }
	return []mention.Sort{
		mention.Texts(kv.Records, 'r', mention.In, id), mention.Texts(kv.Log, 'e', mention.In, id), mention.Texts(kv.Log, 'f', mention.In, unreadable),
	}
}

// store is an older store with some values: in each scope, value i names step i.
func store(tb testing.TB) (engine kv.Engine, scopes []kv.Scope, values int) {
	tb.Helper()
	engine = memkv.New(nil)
	scopes, values = fill(tb, engine)
	return engine, scopes, values
}

func fill(tb testing.TB, engine kv.Engine) (scopes []kv.Scope, values int) {
	tb.Helper()
	values = 150
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	for _, tenant := range []string{"a", "b"} {
		scopes = append(scopes, kv.AgentScope(tenant, "x"), kv.AgentScope(tenant, "y"), kv.Scope{Tenant: tenant, Kind: kv.OwnerUser, Owner: "eva"})
	}
	for _, scope := range scopes {
		refs := []kv.Ref{{Keyspace: kv.Records, Scope: scope}, {Keyspace: kv.Log, Scope: scope}}
		err := writer.Do(tb.Context(), kv.Request{Refs: refs, Stage: func(_ context.Context, tx *kv.Tx) error {
			for i := 1; i <= values; i++ {
				value := wire.AppendItem(nil, 3, fmt.Sprintf("see step_%03d", i))
				tx.Put(kv.Records, scope.Key('r', fmt.Appendf(nil, "%03d", i)), value)
				tx.Put(kv.Records, scope.Key('s', fmt.Appendf(nil, "%03d", i)), value)
				tx.Put(kv.Log, scope.Key('e', fmt.Appendf(nil, "%03d", i)), value)
				tx.Put(kv.Log, scope.Key('f', fmt.Appendf(nil, "%03d", i)), value)
			}
			return nil
		}})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return scopes, values
}

func open(tb testing.TB, engine kv.Engine) (*mention.Backfill, func()) {
	tb.Helper()
	writer := kv.NewWriter(engine, nil)
	b := mention.NewBackfill(tb.Context(), engine, writer, nil, sources()...)
	return b, func() {
		b.Close()
		writer.Close()
	}
}

// The back-fill of an older store that is killed begins anew, ends with all mentions, and is not
// complete before.
func TestBackfill(t *testing.T) {
	engine, scopes, values := store(t)
	kills := 0
	for {
		d := &dying{Engine: engine, left: 5 * kills}
		b, end := open(t, d)
		err := b.Run(t.Context())
		end()
		for _, tenant := range []string{"a", "b"} {
			b, end := open(t, engine)
			complete, completeErr := b.Complete(t.Context(), tenant)
			end()
			if missing := missing(t, engine, scopes, values, tenant); completeErr != nil || complete && missing > 0 {
				t.Fatalf("tenant %s is complete: %v, %v; %d mentions are missing", tenant, complete, completeErr, missing)
			}
		}
		if err == nil {
			break
		}
		if kills++; !errors.Is(err, kv.ErrFull) || kills > 100 {
			t.Fatal(err)
		}
	}
	if kills < 5 {
		t.Errorf("it was killed %d times", kills)
	}
	for _, tenant := range []string{"a", "b"} {
		b, end := open(t, &dying{Engine: engine}) // which writes nothing any more
		if complete, err := b.Complete(t.Context(), tenant); !complete || err != nil || missing(t, engine, scopes, values, tenant) > 0 {
			t.Errorf("tenant %s: %v, %v, %d are missing", tenant, complete, err, missing(t, engine, scopes, values, tenant))
		}
		end()
	}
}

// missing counts the values of a tenant that are not found by the step they name.
func missing(tb testing.TB, engine kv.Engine, scopes []kv.Scope, values int, tenant string) (n int) {
	tb.Helper()
	for _, scope := range scopes {
		if scope.Tenant != tenant {
			continue
		}
		// Records of the person count for everybody.
		r, err := mention.NewReader(tb.Context(), engine, scope)
		if err != nil {
			tb.Fatal(err)
		}
		stranger, err := mention.NewReader(tb.Context(), engine, kv.AgentScope(tenant, "z"))
		if err != nil {
			tb.Fatal(err)
		}
		for i := 1; i <= values; i++ {
			p := mention.Patterns("", uint64(i))[1]
			recorded, err := r.Recorded(tb.Context(), p)
			if err != nil {
				tb.Fatal(err)
			}
			shared, err := stranger.Recorded(tb.Context(), p)
			if err != nil {
				tb.Fatal(err)
			}
			var sessions []string
			for id, err := range r.Sessions(tb.Context(), p) {
				if err != nil {
					tb.Fatal(err)
				}
				sessions = append(sessions, id)
			}
			if !recorded || !shared || !slices.Equal(sessions, []string{fmt.Sprintf("%03d", i)}) {
				n++
			}
		}
	}
	return n
}

// A tenant that comes up after the open is complete at once; one that was there is
// complete when the background has worked through it.
func TestBackfillInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, _, _ := store(t)
		b, end := open(t, engine)
		defer end()
		for tenant, want := range map[string]bool{"a": false, "b": false, "new": true} {
			if complete, err := b.Complete(t.Context(), tenant); complete != want || err != nil {
				t.Errorf("tenant %s: %v, %v", tenant, complete, err)
			}
		}
		b.Start()
		synctest.Wait()
		if complete, err := b.Complete(t.Context(), "a"); !complete || err != nil {
			t.Errorf("afterwards: %v, %v", complete, err)
		}
	})
}

// damaged is an engine whose scans fail while it is.
type damaged struct {
	kv.Engine
	is bool
}

func (d *damaged) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	if d.is {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, kv.ErrDamaged) }
	}
	return d.Engine.Scan(ctx, ks, r)
}

// A store that can't be listed is served; nobody in it is complete until it has been
// worked through.
func TestBackfillOfADamagedStore(t *testing.T) {
	engine, scopes, values := store(t)
	d := &damaged{Engine: engine, is: true}
	b, end := open(t, d)
	defer end()
	if complete, err := b.Complete(t.Context(), "a"); complete || err != nil {
		t.Errorf("a tenant of a store that can't be listed is complete: %v, %v", complete, err)
	}
	if err := b.Run(t.Context()); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("got %v, want that the store is damaged", err)
	}
	d.is = false
	if err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"a", "b"} {
		if complete, err := b.Complete(t.Context(), tenant); !complete || err != nil || missing(t, engine, scopes, values, tenant) > 0 {
			t.Errorf("tenant %s: %v, %v, %d are missing", tenant, complete, err, missing(t, engine, scopes, values, tenant))
		}
	}
}
