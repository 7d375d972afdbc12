package blob_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// newNamed is a store that counts results by kind, or not.
func newNamed(tb testing.TB, byKind bool) *fixture {
	tb.Helper()
	engine := memkv.New(nil)
	tb.Cleanup(func() { engine.Close() })
	f := newFixture(tb, engine)
	f.Store = blob.New(engine, f.writer, &blob.Options{Namer: func(context.Context, kv.Scope, string) (bool, error) { return byKind, nil }})
	return f
}

// mustName stages data under a name.
func (f *fixture) mustName(tb testing.TB, scope kv.Scope, data string, e blob.Entry, n blob.Name) (got blob.Entry) {
	tb.Helper()
	stored, err := f.Add(tb.Context(), scope, []byte(data))
	if err != nil {
		tb.Fatal(err)
	}
	err = f.writer.Do(tb.Context(), kv.Request{
		Refs: []kv.Ref{f.Ref(scope)},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			got, err = f.StageNamed(ctx, tx, scope, stored, e, n)
			return err
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// How results are called, and that it is found under its path, its step's
// id and its ref under each of them.
//
// B13
func TestNamings(t *testing.T) {
	made := []struct{ kind, ext, text string }{
		{"search", "json", `{"results":[]}`},
		{"read", "txt", "one"},
		{"shell", "log", "two"},
		{"search", "json", `{"results":[1]}`},
		{"read", "txt", "three"},
	}
	for byKind, want := range map[bool][]string{
		false: {"search_001.json", "read_002.txt", "shell_003.log", "search_004.json", "read_005.txt"},
		true:  {"search_001.json", "read_001.txt", "shell_001.log", "search_002.json", "read_002.txt"},
	} {
		f := newNamed(t, byKind)
		var got []string
		for i, m := range made {
			number := uint64(i + 1)
			e := f.mustName(t, alice, m.text, blob.Entry{StepID: step.ID(number), Category: m.kind}, blob.Name{Kind: m.kind, Step: number, Ext: m.ext})
			got = append(got, strings.TrimPrefix(e.Path, blob.Folder))
			for _, name := range []string{e.Path, e.StepID, e.StepID + "." + m.ext, blob.Folder + e.StepID + "." + m.ext, e.Ref[:12], e.Ref} {
				if found := f.mustLookup(t, alice, name); found.Ref != e.Ref {
					t.Errorf("%v: %s leads to %s, want %s", byKind, name, found.Path, e.Path)
				}
			}
			if rest, ok := strings.CutPrefix(e.Path, blob.Folder+"read_"); ok {
				if found := f.mustLookup(t, alice, blob.Folder+"file_"+rest); found.Ref != e.Ref {
					t.Errorf("%v: file_%s leads to %s", byKind, rest, found.Path)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", byKind, diff)
		}
	}
}

// A path stays what it was when results are called otherwise, one that is taken gets a
// number, and owners count apart.
//
// B13
func TestNamingChanges(t *testing.T) {
	f := newMemory(t)
	byKind := false
	f.Store = blob.New(f.engine, f.writer, &blob.Options{Namer: func(context.Context, kv.Scope, string) (bool, error) { return byKind, nil }})
	search := func(scope kv.Scope, text string, number uint64, counted bool) string {
		byKind = counted
		return f.mustName(t, scope, text, blob.Entry{StepID: step.ID(number), Category: "search"}, blob.Name{Kind: "search", Step: number, Ext: "json"}).Path
	}
	got := []string{
		search(alice, "1", 2, false), search(alice, "2", 5, true), search(alice, "3", 6, true), search(alice, "4", 7, false), search(bob, "5", 9, true),
	}
	want := []string{
		"workspace/outputs/search_002.json", "workspace/outputs/search_001.json", "workspace/outputs/search_002_2.json",
		"workspace/outputs/search_007.json", "workspace/outputs/search_001.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if e := f.mustLookup(t, alice, "step_002"); e.Path != want[0] {
		t.Errorf("step_002 is at %s", e.Path)
	}
	// What a step's id must not lead to is not named by it.
	f.mustName(t, alice, "args", blob.Entry{Category: "tool"}, blob.Name{Kind: "args", Step: 8, Ext: "json"})
	if _, err := f.Lookup(t.Context(), alice, "step_008"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("step_008: %v", err)
	}
}

// Who knows the sessions says how their blobs are called.
//
// B13
func TestNamingOfSessions(t *testing.T) {
	refused := errors.New("no settings")
	f := newMemory(t)
	f.Store = blob.New(f.engine, f.writer, &blob.Options{Namer: func(_ context.Context, scope kv.Scope, sessionID string) (bool, error) {
		if scope != alice {
			return false, refused
		}
		return sessionID == "counted", nil
	}})
	for session, want := range map[string]string{"plain": "read_007.txt", "counted": "read_001.txt"} {
		e := f.mustName(t, alice, session, blob.Entry{SessionID: session}, blob.Name{Kind: "read", Step: 7, Ext: "txt"})
		if got := strings.TrimPrefix(e.Path, blob.Folder); got != want {
			t.Errorf("session %s: %s, want %s", session, got, want)
		}
	}
	stored, err := f.Add(t.Context(), bob, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	err = f.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{f.Ref(bob)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		_, err := f.StageNamed(ctx, tx, bob, stored, blob.Entry{}, blob.Name{Kind: "read", Step: 1, Ext: "txt"})
		return err
	}})
	if !errors.Is(err, refused) {
		t.Error(err)
	}
}
