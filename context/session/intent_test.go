package session_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func (f *fixture) done(tb testing.TB, scope kv.Scope, id string) {
	tb.Helper()
	err := f.writer.Do(tb.Context(), kv.Request{
		Blind: []kv.Ref{f.IntentRef(scope)},
		Stage: func(_ context.Context, tx *kv.Tx) error { f.StageIntentDone(tx, scope, id); return nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func (f *fixture) mustIntend(tb testing.TB, scope kv.Scope, in session.Intent) session.Intent {
	tb.Helper()
	if err := f.WriteIntent(tb.Context(), scope, in); err != nil {
		tb.Fatal(err)
	}
	in.Scope, in.Time = scope, noon
	return in
}

// Intents of all tenants and agents are found after a restart; those whose step
// was recorded are not.
func TestIntentsSurviveARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var want []session.Intent
	open(t, dir, func(f *fixture) {
		full := session.Intent{
			ID: "i1", SessionID: "s", Tool: "fs:write_file", CalledAs: "write_file", MinimalArgs: []byte(`{"path":"a"}`),
			Thought: "now", TurnID: "t", CallID: "c", RequestID: "r", Digest: [32]byte{1, 2, 3},
		}
		want = append(want, f.mustIntend(t, kv.AgentScope("t", "alice"), full))
		want = append(want, f.mustIntend(t, kv.AgentScope("t", "alice"), session.Intent{ID: "i2\x00", Tool: "x"}))
		f.mustIntend(t, bob, session.Intent{ID: "i1", Tool: "x"})
		want = append(want, f.mustIntend(t, kv.AgentScope("t\x01", "alice"), session.Intent{ID: "i1", Tool: "y"}))
		want = append(want, f.mustIntend(t, kv.AgentScope("u", "a b/c"), session.Intent{ID: "i1", Tool: "z"}))
		f.otherSystemKeys(t)
		f.done(t, bob, "i1")
		f.done(t, bob, "never there")
	})
	open(t, dir, func(f *fixture) {
		got := mustCollect(t, f.Intents(t.Context()))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, in := range want {
			if got, ok, err := f.Intent(t.Context(), in.Scope, in.ID); !ok || err != nil || !cmp.Equal(in, got) {
				t.Errorf("%s of %s: got %+v, %v, %v", in.ID, in.Scope, got, ok, err)
			}
		}
		if got, ok, err := f.Intent(t.Context(), bob, "i1"); ok || err != nil {
			t.Errorf("an intent that is done: got %+v, %v, %v", got, ok, err)
		}
		for _, err := range f.Intents(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			break
		}
	})
}

// What stores before format 4 have is found beside what is written since, and goes.
func TestIntentsOfAnOlderStore(t *testing.T) {
	f := newMemory(t)
	carol := kv.AgentScope(alice.Tenant, "carol")
	scopes := map[string]kv.Scope{"old 1": alice, "old 2": alice, "old 3": bob, "new 1": alice, "new 2": carol}
	for _, id := range []string{"old 1", "old 2", "old 3"} {
		f.mustIntend(t, scopes[id], session.Intent{ID: id, Tool: "x"})
	}
	if n := kvtest.Undivide(t, f.engine, "intents"); n != 3 {
		t.Fatalf("%d intents moved", n)
	}
	for _, id := range []string{"new 1", "new 2"} {
		f.mustIntend(t, scopes[id], session.Intent{ID: id, Tool: "x"})
	}
	left := mustCollect(t, f.Intents(t.Context()))
	if len(left) != len(scopes) {
		t.Errorf("%d intents, want %d", len(left), len(scopes))
	}
	for _, in := range left {
		if scopes[in.ID] != in.Scope {
			t.Errorf("%s is of %s", in.ID, in.Scope)
		}
		if _, ok, err := f.Intent(t.Context(), in.Scope, in.ID); !ok || err != nil {
			t.Errorf("%s: found %t, %v", in.ID, ok, err)
		}
		err := f.writer.Do(t.Context(), kv.Request{
			Blind: f.LeftIntentRefs(in.Scope),
			Stage: func(_ context.Context, tx *kv.Tx) error { f.StageIntentSettled(tx, in.Scope, in.ID); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for list, err := range kv.List("intents").Scopes(t.Context(), f.engine) {
		t.Errorf("something is left in %s, %v", list, err)
	}
}

// otherSystemKeys writes what is no intent around the intents.
func (f *fixture) otherSystemKeys(tb testing.TB) {
	tb.Helper()
	for _, scope := range []kv.Scope{
		{Tenant: "a", Kind: kv.OwnerSystem, Owner: "leases"},
		{Tenant: "t", Kind: kv.OwnerSystem, Owner: "intent"},
		{Tenant: "t", Kind: kv.OwnerSystem, Owner: "intents2"},
		{Tenant: "z", Kind: kv.OwnerSystem, Owner: "leases"},
		{Tenant: "t", Kind: kv.OwnerSystem, Owner: "intents"},
	} {
		err := f.writer.Do(tb.Context(), kv.Request{
			Blind: []kv.Ref{{Keyspace: kv.System, Scope: scope}},
			Stage: func(_ context.Context, tx *kv.Tx) error { tx.Put(kv.System, scope.Key('z'), []byte("x")); return nil },
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func TestIntentIDs(t *testing.T) {
	f := newMemory(t)
	for _, id := range []string{"", strings.Repeat("i", session.MaxIntentIDBytes+1)} {
		if err := f.WriteIntent(t.Context(), alice, session.Intent{ID: id}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("id of %d bytes: %v", len(id), err)
		}
	}
	longest := kv.AgentScope(strings.Repeat("t", kv.MaxTenantBytes), strings.Repeat("o", kv.MaxOwnerBytes))
	want := f.mustIntend(t, longest, session.Intent{ID: strings.Repeat("i", session.MaxIntentIDBytes)})
	if diff := cmp.Diff([]session.Intent{want}, mustCollect(t, f.Intents(t.Context()))); diff != "" {
		t.Error(diff)
	}
	if err := f.WriteIntent(t.Context(), kv.Scope{}, session.Intent{ID: "i"}); err == nil {
		t.Error("an intent without a scope was written")
	}
}

// A11: what the agent wrote is known by path, so that a change by others shows.
func TestWrittenHashes(t *testing.T) {
	f := newMemory(t)
	note := func(scope kv.Scope, path, sha string) {
		t.Helper()
		err := f.writer.Do(t.Context(), kv.Request{
			Blind: []kv.Ref{f.Ref(scope)},
			Stage: func(_ context.Context, tx *kv.Tx) error { f.StageWrittenHash(tx, scope, path, sha); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(scope kv.Scope, path, want string) {
		t.Helper()
		got, ok, err := f.WrittenHash(t.Context(), scope, path)
		if err != nil || got != want || ok != (want != "") {
			t.Errorf("%s %.20q: %q, %t, %v, want %q", scope.Owner, path, got, ok, err, want)
		}
	}
	long, first, second := strings.Repeat("d/", 2000), strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	check(alice, "a", "")
	note(alice, "a", first)
	note(alice, long, second)
	check(alice, "a", first)
	check(alice, long, second)
	check(alice, long+"x", "")
	check(bob, "a", "")
	note(alice, "a", second)
	check(alice, "a", second)
	note(alice, "a", "")
	check(alice, "a", "")
}
