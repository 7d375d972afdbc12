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

// newNamed is a store with a naming.
func newNamed(tb testing.TB, naming blob.Naming) *fixture {
	tb.Helper()
	engine := memkv.New(nil)
	tb.Cleanup(func() { engine.Close() })
	f := newFixture(tb, engine)
	f.Store = blob.New(engine, f.writer, &blob.Options{Naming: naming})
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

// What is named by which naming, and that it is found under its path, its step's
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
	for naming, want := range map[blob.Naming][]string{
		0:                   {"search_001.json", "read_002.txt", "shell_003.log", "search_004.json", "read_005.txt"},
		blob.NamingKindStep: {"search_001.json", "read_002.txt", "shell_003.log", "search_004.json", "read_005.txt"},
		blob.NamingKindSeq:  {"search_001.json", "read_001.txt", "shell_001.log", "search_002.json", "read_002.txt"},
		blob.NamingStepID:   {"step_001.json", "step_002.txt", "step_003.log", "step_004.json", "step_005.txt"},
		blob.NamingRef:      {"", "", "", "", ""},
	} {
		f := newNamed(t, naming)
		var got []string
		for i, m := range made {
			number := uint64(i + 1)
			e := f.mustName(t, alice, m.text, blob.Entry{StepID: step.ID(number), Category: m.kind}, blob.Name{Kind: m.kind, Step: number, Ext: m.ext})
			if naming == blob.NamingRef {
				want[i] = e.Ref[:12] + "." + m.ext
			}
			got = append(got, strings.TrimPrefix(e.Path, blob.Folder))
			for _, name := range []string{e.Path, e.StepID, e.StepID + "." + m.ext, blob.Folder + e.StepID + "." + m.ext, e.Ref[:12], e.Ref} {
				if found := f.mustLookup(t, alice, name); found.Ref != e.Ref {
					t.Errorf("%v: %s leads to %s, want %s", naming, name, found.Path, e.Path)
				}
			}
			if rest, ok := strings.CutPrefix(e.Path, blob.Folder+"read_"); ok {
				if found := f.mustLookup(t, alice, blob.Folder+"file_"+rest); found.Ref != e.Ref {
					t.Errorf("%v: file_%s leads to %s", naming, rest, found.Path)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", naming, diff)
		}
	}
}

// A path stays what it was when the naming changes, one that is taken gets a
// number, and owners count apart.
//
// B13
func TestNamingChanges(t *testing.T) {
	f := newMemory(t)
	search := func(scope kv.Scope, text string, number uint64, naming blob.Naming) string {
		name := blob.Name{Kind: "search", Step: number, Ext: "json", Naming: naming}
		return f.mustName(t, scope, text, blob.Entry{StepID: step.ID(number), Category: "search"}, name).Path
	}
	got := []string{
		search(alice, "1", 2, blob.NamingKindStep), search(alice, "2", 5, blob.NamingKindSeq), search(alice, "3", 6, blob.NamingKindSeq),
		search(alice, "4", 7, 0), search(bob, "5", 9, blob.NamingKindSeq), search(alice, "6", 7, blob.NamingStepID), search(alice, "7", 7, blob.NamingStepID),
	}
	want := []string{
		"workspace/outputs/search_002.json", "workspace/outputs/search_001.json", "workspace/outputs/search_002_2.json",
		"workspace/outputs/search_007.json", "workspace/outputs/search_001.json", "workspace/outputs/step_007.json", "workspace/outputs/step_007_2.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if e := f.mustLookup(t, alice, "step_002"); e.Path != want[0] {
		t.Errorf("step_002 is at %s", e.Path)
	}
	// What a step's id must not lead to is not named by it.
	e := f.mustName(t, alice, "args", blob.Entry{Category: "tool"}, blob.Name{Kind: "args", Step: 8, Ext: "json", Naming: blob.NamingStepID})
	if e.Path != "workspace/outputs/args_008.json" {
		t.Errorf("arguments are at %s", e.Path)
	}
	if _, err := f.Lookup(t.Context(), alice, "step_008"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("step_008: %v", err)
	}
}

// Who knows the sessions says how their blobs are called, unless the store does.
//
// B13
func TestNamingOfSessions(t *testing.T) {
	refused := errors.New("no settings")
	namer := func(_ context.Context, scope kv.Scope, sessionID string) (blob.Naming, error) {
		if scope != alice {
			return 0, refused
		}
		return map[string]blob.Naming{"counted": blob.NamingKindSeq}[sessionID], nil
	}
	for naming, want := range map[blob.Naming][]string{
		0:                   {"read_007.txt", "read_001.txt"},
		blob.NamingKindStep: {"read_007.txt", "read_007_2.txt"},
	} {
		f := newNamed(t, naming)
		f.Store = blob.New(f.engine, f.writer, &blob.Options{Naming: naming, Namer: namer})
		for i, session := range []string{"plain", "counted"} {
			e := f.mustName(t, alice, session, blob.Entry{SessionID: session}, blob.Name{Kind: "read", Step: 7, Ext: "txt"})
			if got := strings.TrimPrefix(e.Path, blob.Folder); got != want[i] {
				t.Errorf("%v, session %s: %s, want %s", naming, session, got, want[i])
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
		if errors.Is(err, refused) != (naming == 0) {
			t.Errorf("%v: %v", naming, err)
		}
	}
}

func TestNamesOfNamings(t *testing.T) {
	for _, n := range []blob.Naming{blob.NamingKindStep, blob.NamingKindSeq, blob.NamingStepID, blob.NamingRef} {
		if got, ok := blob.ParseNaming(n.String()); !ok || got != n {
			t.Errorf("%q is %v, %v", n, got, ok)
		}
	}
	for _, text := range []string{"", "kind", blob.Naming(9).String()} {
		if n, ok := blob.ParseNaming(text); ok {
			t.Errorf("%q is %v", text, n)
		}
	}
}
