package memory_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

func (r *rig) MustDelete(tb testing.TB, id string) {
	tb.Helper()
	if _, err := r.Delete(tb.Context(), agent, memory.Deletion{ID: id}, ""); err != nil {
		tb.Fatalf("delete %q: %v", id, err)
	}
}

func testDelete(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "a", Key: "k", Text: "apple pie"})
	r.MustSave(t, record.Record{ID: "b", Text: "apple juice", DerivedFrom: []string{"a"}})
	r.MustUpdate(t, text("a", "apple cake"))
	gone, err := r.Delete(t.Context(), agent, memory.Deletion{Key: "k", ExpectedVersion: 2}, "req")
	if err != nil || gone != (memory.Deleted{ID: "a", Version: 2}) {
		t.Fatalf("deleted %+v, %v", gone, err)
	}
	if again, err := r.Delete(t.Context(), agent, memory.Deletion{Key: "k", ExpectedVersion: 2}, "req"); err != nil || again != gone {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	if _, err := r.Delete(t.Context(), agent, memory.Deletion{ID: "b"}, "req"); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("other content: %v", err)
	}
	for _, err := range []error{
		second(r.Get(t.Context(), agent, "a")),
		second(r.GetByKey(t.Context(), agent, "k")),
		second(r.Update(t.Context(), agent, text("a", "x"), "")),
		second2(r.Versions(t.Context(), agent, "a", 0, 0)),
		second3(r.Delete(t.Context(), agent, memory.Deletion{ID: "a"}, "")),
		second3(r.Delete(t.Context(), agent, memory.Deletion{Key: "k"}, "")),
	} {
		if !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("after the deletion: %v", err)
		}
	}
	mustEqual(t, "found", []string{"b"}, ids(r.MustQuery(t, question.Question{Text: "apple"})))
	mustEqual(t, "what derives from it", []string{"a"}, r.MustGet(t, "b").DerivedFrom)
	r.MustPack(t)
	mustEqual(t, "found when packed", []string{"b"}, ids(r.MustQuery(t, question.Question{Text: "apple"})))

	// Its names are free, and the new record has nothing of it.
	fresh := r.MustSave(t, record.Record{ID: "a", Key: "k", Text: "apricot"})
	if fresh.Version != 1 || len(r.MustVersions(t, "a")) != 0 {
		t.Errorf("the new record has a past: %+v", fresh)
	}
	if stats, err := r.Stats(t.Context(), agent); err != nil || stats.Records != 2 || stats.Versions != 0 {
		t.Errorf("stats %+v, %v", stats, err)
	}
}

func second2(_ []record.Record, err error) error { return err }
func second3(_ memory.Deleted, err error) error  { return err }

func testDeleteErrors(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "a", Text: "apple"})
	for _, d := range []memory.Deletion{{}, {ID: "a", Key: "k"}, {ID: "a", ExpectedVersion: -1}, {ID: "a\n"}} {
		if _, err := r.Delete(t.Context(), agent, d, ""); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if _, err := r.Delete(t.Context(), agent, memory.Deletion{ID: "a", ExpectedVersion: 2}, ""); !errors.Is(err, memory.ErrVersionConflict) {
		t.Errorf("other version: %v", err)
	}
	r.MustGet(t, "a")
}

// testKeyMovedOn: deleting a record that lost its key leaves the key with whoever
// has it now.
func testKeyMovedOn(t *testing.T, r *rig) {
	old := r.MustSave(t, record.Record{Key: "city", Text: "Ann lives in Paris"})
	by := r.MustSave(t, record.Record{Key: "city", Text: "Ann lives in Oslo", Supersedes: old.ID})
	r.MustDelete(t, old.ID)
	if got, err := r.GetByKey(t.Context(), agent, "city"); err != nil || got.ID != by.ID {
		t.Errorf("by key: %+v, %v", got, err)
	}
	r.MustUpdate(t, text(by.ID, "Ann lives in Bergen"))
	r.MustDelete(t, by.ID)
	r.MustSave(t, record.Record{Key: "city", Text: "Bob lives in Rome"})
}

// Who asks learns of each record that says no more what it said: deleted by its id, by a filter,
// by its time, with another text, rejected. One that is replaced, or could not be deleted, does.
func TestOnRemoved(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	var gone []string
	r.OnRemoved(func(ids []string) { gone = append(gone, ids...) })
	for _, id := range []string{"named", "filtered", "stays"} {
		r.MustSave(t, record.Record{ID: id, Text: "about " + id, Tags: []string{id}})
	}
	r.MustSave(t, record.Record{ID: "expires", Text: "soon over", TTL: time.Minute})
	r.MustSave(t, record.Record{ID: "newer", Text: "about what stays", Supersedes: "stays"})
	r.MustUpdate(t, memory.Update{ID: "newer", Fields: memory.TagsField, Values: record.Record{Tags: []string{"x"}}})
	if _, err := r.Delete(t.Context(), agent, memory.Deletion{ID: "named", ExpectedVersion: 7}, ""); err == nil || gone != nil {
		t.Fatalf("nothing was deleted, yet %v are gone: %v", gone, err)
	}
	r.MustUpdate(t, text("newer", "about what is"))
	r.MustUpdate(t, memory.Update{ID: "newer", Review: record.ReviewRejected})
	_, err := r.Delete(t.Context(), agent, memory.Deletion{ID: "named"}, "")
	if err == nil {
		_, err = r.DeleteMatching(t.Context(), agent, memory.Matching{Filter: `tags:"filtered"`})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.clock.Set(r.clock.Now().Add(2 * time.Minute))
	r.MustSweep(t)
	if want := []string{"newer", "newer", "named", "filtered", "expires"}; !slices.Equal(gone, want) {
		t.Errorf("gone are %v, want %v", gone, want)
	}
}
