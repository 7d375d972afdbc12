package session_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

func (f *fixture) mustWorking(tb testing.TB, scope kv.Scope, id string) working.Working {
	tb.Helper()
	w, err := f.Working(tb.Context(), scope, id)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// What an agent is at is its own and its session's, and outlives the server.
func TestWorkingIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	goal := "win"
	want := working.Working{Goal: goal, Plan: working.Plan{{Text: "a", Status: working.Done}, {Text: "b"}}, Active: []string{"kept"}}
	open(t, dir, func(f *fixture) {
		got, err := f.UpdateWorking(t.Context(), alice, "s", session.WorkingUpdate{Change: working.Change{Goal: &goal, Plan: &want.Plan, Activate: want.Active}, Known: []string{"kept"}, RequestID: ""})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
	open(t, dir, func(f *fixture) {
		if diff := cmp.Diff(want, f.mustWorking(t, alice, "s")); diff != "" {
			t.Error(diff)
		}
		for _, got := range []working.Working{f.mustWorking(t, alice, ""), f.mustWorking(t, bob, "s")} {
			if !got.Empty() {
				t.Errorf("another session is at %+v", got)
			}
		}
	})
}

func TestUpdateWorkingIsSafeToRepeat(t *testing.T) {
	f := newMemory(t)
	one, two := "one", "two"
	update := func(id string, goal *string) (working.Working, error) {
		return f.UpdateWorking(t.Context(), alice, id, session.WorkingUpdate{Change: working.Change{Goal: goal}, Known: nil, RequestID: "r"})
	}
	if _, err := update("s", &one); err != nil {
		t.Fatal(err)
	}
	if _, err := f.UpdateWorking(t.Context(), alice, "s", session.WorkingUpdate{Change: working.Change{Goal: &two}, Known: nil, RequestID: ""}); err != nil {
		t.Fatal(err)
	}
	if got, err := update("s", &one); err != nil || got.Goal != one {
		t.Errorf("once more: %+v, %v", got, err)
	}
	if got := f.mustWorking(t, alice, "s"); got.Goal != two {
		t.Errorf("the goal is %q", got.Goal)
	}
	for id, goal := range map[string]*string{"s": &two, "s2": &one} {
		if _, err := update(id, goal); !errors.Is(err, kv.ErrRequestReused) {
			t.Errorf("another change with the id: %v", err)
		}
	}
}

// A skill becomes active if the session declares it or the caller knows it; what is
// refused changes nothing.
func TestSkillsAreKnown(t *testing.T) {
	f := newMemory(t)
	declared := session.Config{Prompt: &settings.Prompt{Skills: []settings.Skill{{Name: "declared"}}}}
	if _, err := f.Configure(t.Context(), alice, "s", set(declared), "", nil); err != nil {
		t.Fatal(err)
	}
	goal, wrong := "win", "\xff"
	for _, test := range []struct {
		field  string // empty: it is taken
		change working.Change
	}{
		{"", working.Change{Activate: []string{"declared"}}},
		{"", working.Change{Activate: []string{"known"}}},
		{"deactivate[0]", working.Change{Deactivate: []string{"nobody's"}}},
		{"", working.Change{Deactivate: []string{"known"}}},
		{"activate[1]", working.Change{Goal: &goal, Activate: []string{"known", "nobody's"}}},
		{"goal", working.Change{Goal: &wrong, Deactivate: []string{"known"}}},
	} {
		_, err := f.UpdateWorking(t.Context(), alice, "s", session.WorkingUpdate{Change: test.change, Known: []string{"known"}, RequestID: ""})
		bad, ok := errors.AsType[*invalid.Error](err)
		if test.field == "" && err != nil || test.field != "" && (!ok || bad.Field != test.field) {
			t.Errorf("got %v, want one of %q", err, test.field)
		}
	}
	want := working.Working{Active: []string{"declared"}, Inactive: []string{"known"}}
	if diff := cmp.Diff(want, f.mustWorking(t, alice, "s")); diff != "" {
		t.Error(diff)
	}
	if _, err := f.Working(t.Context(), kv.Scope{}, "s"); !errors.Is(err, kv.ErrBadScope) {
		t.Errorf("bad scope: %v", err)
	}
	if _, err := f.UpdateWorking(t.Context(), alice, "\x00", session.WorkingUpdate{}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("bad session: %v", err)
	}
}
