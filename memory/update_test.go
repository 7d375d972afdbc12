package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

func (r *rig) MustUpdate(tb testing.TB, u memory.Update) record.Record {
	tb.Helper()
	updated, err := r.Update(tb.Context(), agent, u, "")
	if err != nil {
		tb.Fatalf("update %s%s: %v", u.ID, u.Key, err)
	}
	return updated
}

func (r *rig) MustGet(tb testing.TB, id string) record.Record {
	tb.Helper()
	got, err := r.Get(tb.Context(), agent, id)
	if err != nil {
		tb.Fatalf("get %q: %v", id, err)
	}
	return got
}

func (r *rig) MustVersions(tb testing.TB, id string) []record.Record {
	tb.Helper()
	versions, err := r.Versions(tb.Context(), agent, id, 0, 0)
	if err != nil {
		tb.Fatalf("versions of %q: %v", id, err)
	}
	return versions
}

func text(id, text string) memory.Update {
	return memory.Update{ID: id, Fields: memory.TextField, Values: record.Record{Text: text}}
}

func testUpdate(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "source", Text: "Where it came from", Origin: record.OriginUser})
	first := r.MustSave(t, record.Record{
		ID: "a", Key: "city", Text: "Ann lives in Paris", Tags: []string{"home"}, Author: "Bob",
		Metadata: json.RawMessage(`{"n":1}`), Importance: 0.5,
	})
	for range 2 { // from the tail, then packed
		before := r.MustGet(t, "a")
		later := r.clock.Now().Add(time.Minute)
		r.clock.Set(later)
		want := before
		want.Text, want.Kind, want.SessionID, want.Author = "Ann lives in Oslo", "state", "s2", "Cy"
		want.EventTime, want.Metadata, want.Tags = start.Add(-time.Hour), json.RawMessage(`{"n":2}`), []string{"new", "town"}
		want.Importance, want.Origin, want.DerivedFrom = 0.9, record.OriginUser, []string{"source"}
		want.Pinned, want.Version, want.UpdateTime = true, before.Version+1, later
		values := want
		values.ID, values.Key, values.Tags, values.CreateTime = "", "", []string{"town", "new", "town"}, time.Time{}
		got := r.MustUpdate(t, memory.Update{Key: "city", ExpectedVersion: before.Version, Values: values, Fields: memory.TextField |
			memory.KindField | memory.SessionField | memory.AuthorField | memory.EventTimeField | memory.MetadataField | memory.TagsField |
			memory.ImportanceField | memory.OriginField | memory.DerivedFromField | memory.PinnedField})
		mustEqual(t, "updated", want, got)
		mustEqual(t, "by id", want, r.MustGet(t, "a"))
		mustEqual(t, "found by its new words", []string{"a"}, ids(r.MustQuery(t, question.Question{Text: "Oslo", Filter: `tags:"new" AND metadata.n = 2`})))
		mustEqual(t, "found by its old words", []string{}, ids(r.MustQuery(t, question.Question{Text: "Paris"})))
		mustEqual(t, "earlier versions", before, r.MustVersions(t, "a")[0])
		r.MustPack(t)
		r.MustUpdate(t, memory.Update{ID: "a", Values: first, Fields: memory.TextField | memory.KindField | memory.SessionField |
			memory.AuthorField | memory.EventTimeField | memory.MetadataField | memory.TagsField | memory.ImportanceField |
			memory.OriginField | memory.DerivedFromField | memory.PinnedField})
		r.MustPack(t)
		r.MustCheck(t, agent)
	}
	versions := r.MustVersions(t, "a")
	if len(versions) != 4 || versions[0].Version != 4 || versions[3].Version != 1 {
		t.Fatalf("%d versions: %+v", len(versions), versions)
	}
	mustEqual(t, "the first version", first, versions[3])
	stats, err := r.Stats(t.Context(), agent)
	if err != nil || stats.Records != 2 || stats.Versions != 4 {
		t.Errorf("stats %+v, %v", stats, err)
	}
}

// A version is never older than the one before it, whoever asked first and however the clock
// goes, so that each is found as of when it came.
func testUpdateOrder(t *testing.T, r *rig) {
	first := r.MustSave(t, record.Record{ID: "a", Text: "one"})
	for n, minutes := range []time.Duration{2, -3, 1, 4} {
		r.clock.Set(start.Add(minutes * time.Minute))
		before := r.MustGet(t, "a")
		got := r.MustUpdate(t, text("a", fmt.Sprint("change ", n)))
		if got.UpdateTime.Before(before.UpdateTime) || got.UpdateTime.Before(first.CreateTime) {
			t.Errorf("version %d is of %v, that before of %v", got.Version, got.UpdateTime, before.UpdateTime)
		}
	}
	for minutes, want := range map[time.Duration]int64{0: 1, 1: 1, 2: 4, 3: 4, 4: 5} {
		got, err := r.Read(t.Context(), agent, memory.Reading{ID: "a", AsOf: start.Add(minutes * time.Minute)})
		if err != nil || got.Version != want {
			t.Errorf("after %d minutes: version %d, %v, want %d", minutes, got.Version, err, want)
		}
	}
	if _, err := r.Read(t.Context(), agent, memory.Reading{ID: "a", AsOf: start.Add(-time.Minute)}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("before it was saved: %v", err)
	}
}

func testUpdateErrors(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "a", Text: "apple", Key: "k"})
	gone := r.MustSave(t, record.Record{Text: "gone soon", TTL: time.Second})
	r.clock.Set(start.Add(time.Second))
	wrongs := map[string]memory.Update{
		"id":               {Fields: memory.TextField, Values: record.Record{Text: "x"}},
		"key":              {ID: "a", Key: "k", Fields: memory.PinnedField},
		"update_mask":      {ID: "a"},
		"expected_version": {ID: "a", ExpectedVersion: -1, Fields: memory.PinnedField},
		"text":             {ID: "a", Fields: memory.TextField},
		"metadata":         {ID: "a", Fields: memory.MetadataField, Values: record.Record{Metadata: json.RawMessage(`[]`)}},
		"importance":       {ID: "a", Fields: memory.ImportanceField, Values: record.Record{Importance: 2}},
		"expire_time":      {ID: "a", Fields: memory.ExpiryField, Values: record.Record{ExpireTime: start}},
		"ttl":              {ID: "a", Fields: memory.ExpiryField, Values: record.Record{TTL: -1}},
		"sliding_ttl":      {ID: "a", Fields: memory.ExpiryField, Values: record.Record{TTL: 1, SlidingTTL: 1}},
		"embedding_space":  {ID: "a", Fields: memory.EmbeddingField, Values: record.Record{Embedding: []float32{1}}},
		"tier":             {ID: "a", Fields: memory.TierField, Values: record.Record{Tier: 5}},
	}
	for field, u := range wrongs {
		var wrong *invalid.Error
		if _, err := r.Update(t.Context(), agent, u, ""); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("want an invalid %s, got %v", field, err)
		}
	}
	for name, u := range map[string]memory.Update{
		"id":           text("nobody", "x"),
		"key":          {Key: "nobody", Fields: memory.PinnedField},
		"derived_from": {ID: "a", Fields: memory.DerivedFromField, Values: record.Record{DerivedFrom: []string{"nobody"}}},
		"expired":      text(gone.ID, "x"),
	} {
		if _, err := r.Update(t.Context(), agent, u, ""); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	u := text("a", "pear")
	u.ExpectedVersion = 2
	var conflict *memory.VersionError
	if _, err := r.Update(t.Context(), agent, u, ""); !errors.As(err, &conflict) || *conflict != (memory.VersionError{ID: "a", Expected: 2, Version: 1}) {
		t.Errorf("conflict: %v", err)
	}
	// A field that does not change may hold anything.
	kept := r.MustUpdate(t, memory.Update{ID: "a", Fields: memory.PinnedField, Values: record.Record{Importance: 7, Metadata: json.RawMessage(`[`), TTL: -1}})
	if kept.Version != 2 || kept.Text != "apple" || kept.Pinned {
		t.Errorf("after all: %+v", kept)
	}
}

func testUpdateRequestID(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "a", Text: "one", TTL: time.Hour})
	u := memory.Update{ID: "a", Fields: memory.TextField | memory.ExpiryField, Values: record.Record{Text: "two", TTL: time.Hour}}
	first, err := r.Update(t.Context(), agent, u, "req")
	if err != nil {
		t.Fatal(err)
	}
	r.clock.Set(start.Add(time.Minute))
	r.MustUpdate(t, text("a", "three"))
	r.MustSave(t, record.Record{Text: "four", Supersedes: "a"})
	again, err := r.Update(t.Context(), agent, u, "req")
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "repeated answer", first, again)
	if got := r.MustGet(t, "a"); got.Text != "three" || got.Version != 3 {
		t.Errorf("the repeat changed it: %+v", got)
	}
	u.Values.TTL = 2 * time.Hour
	if _, err := r.Update(t.Context(), agent, u, "req"); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("other content: %v", err)
	}
}

// testCompareAndSet has 64 writers change the version that all of them read.
func testCompareAndSet(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "a", Text: "round 0"})
	for round := range 8 {
		read := r.MustGet(t, "a").Version
		var wg sync.WaitGroup
		var wins, conflicts atomic.Int32
		for i := range 64 {
			wg.Go(func() {
				u := text("a", fmt.Sprintf("round %d by %d", round, i))
				u.ExpectedVersion = read
				switch _, err := r.Update(t.Context(), agent, u, ""); {
				case err == nil:
					wins.Add(1)
				case errors.Is(err, memory.ErrVersionConflict):
					conflicts.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || conflicts.Load() != 63 {
			t.Fatalf("round %d: %d winners, %d conflicts", round, wins.Load(), conflicts.Load())
		}
		if got := r.MustGet(t, "a"); got.Version != read+1 {
			t.Fatalf("round %d: version %d after %d", round, got.Version, read)
		}
	}
	if n := len(r.MustVersions(t, "a")); n != 8 {
		t.Errorf("%d versions", n)
	}
}

// testUpdateSuperseded: a record that was replaced stays so, whatever becomes of
// it, as long as the one that replaced it is there.
func testUpdateSuperseded(t *testing.T, r *rig) {
	old := r.MustSave(t, record.Record{Text: "Ann lives in Paris"})
	by := r.MustSave(t, record.Record{Text: "Ann lives in Oslo", Supersedes: old.ID})
	other := r.MustSave(t, record.Record{Text: "Bob lives in Rome"})
	found := func(want ...string) {
		t.Helper()
		result := r.MustQuery(t, question.Question{Text: "lives"})
		if len(result.Hits) != len(want) {
			t.Errorf("found %q, want %q", ids(result), want)
		}
		for i, id := range ids(result) {
			if id == old.ID || len(want) == 1 && id != want[i] {
				t.Errorf("found %q, want %q", ids(result), want)
			}
		}
		r.MustCheck(t, agent)
	}
	found(other.ID, by.ID)
	r.MustUpdate(t, text(by.ID, "Ann lives in Oslo now"))
	found(other.ID, by.ID)
	r.MustUpdate(t, text(old.ID, "Ann lives in Paris, France"))
	found(other.ID, by.ID)
	r.MustPack(t)
	found(other.ID, by.ID)
	if _, err := r.Delete(t.Context(), agent, memory.Deletion{ID: by.ID}, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := ids(r.MustQuery(t, question.Question{Text: "lives"})); len(got) != 2 || !slices.Contains(got, old.ID) {
			t.Errorf("found %q, want %q again", got, old.ID)
		}
		r.MustPack(t)
	}
	if got := r.MustGet(t, old.ID); got.SupersededBy != "" || !got.SupersededTime.IsZero() || got.Version != 2 {
		t.Errorf("the old record: %+v", got)
	}
}

// testHealChain: whatever goes out of a chain of records that replaced each other, the rest
// is a chain whose last record is found, and has the key.
func testHealChain(t *testing.T, r *rig) {
	const length = 4
	name := func(i int) string { return fmt.Sprint("home ", i) }
	for mask := range 1 << length {
		for i := range length {
			one := record.Record{ID: name(i), Key: "home", Text: fmt.Sprintf("Ann lives in flat %d", i)}
			if i > 0 {
				one.Supersedes = name(i - 1)
			}
			r.MustSave(t, one)
		}
		switch mask % 3 {
		case 1:
			r.MustPack(t)
		case 2:
			r.MustUpdate(t, text(name(1), "Ann lives in flat one")) // its document says itself that it is replaced
		}
		var left []string
		for i := range length {
			if mask&(1<<i) == 0 {
				left = append(left, name(i))
				continue
			}
			r.MustDelete(t, name(i))
		}
		for i, id := range left {
			got := r.MustGet(t, id)
			if i+1 < len(left) && (got.SupersededBy != left[i+1] || got.SupersededTime.IsZero()) || i+1 == len(left) && got.SupersededBy != "" {
				t.Fatalf("left %q: %s is replaced by %q", left, id, got.SupersededBy)
			}
			if i > 0 && got.Supersedes != left[i-1] {
				t.Fatalf("left %q: %s replaces %q", left, id, got.Supersedes)
			}
		}
		want, holder := []string{}, ""
		if len(left) > 0 {
			holder = left[len(left)-1]
			want = []string{holder}
		}
		mustEqual(t, fmt.Sprintf("left %q", left), want, ids(r.MustQuery(t, question.Question{Text: "lives"})))
		if got, err := r.GetByKey(t.Context(), agent, "home"); got.ID != holder || (err == nil) != (holder != "") {
			t.Fatalf("left %q: the key names %q, %v", left, got.ID, err)
		}
		r.MustCheck(t, agent)
		for _, id := range left {
			r.MustDelete(t, id)
		}
	}
}

// testFewerVersions: a lower bound holds for reads at once, and on the disk from the next
// change on; a higher one brings nothing back.
func testFewerVersions(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "a", Text: "text 0"})
	change := func(n int) {
		for range n {
			r.MustUpdate(t, text("a", "another text"))
		}
	}
	holds := func(shown, kept int) {
		t.Helper()
		if n := len(r.MustVersions(t, "a")); n != shown {
			t.Errorf("%d versions shown, want %d", n, shown)
		}
		if n := keysOf(t, r.engine, agent, kv.Records)['h']; n != kept {
			t.Errorf("%d versions kept, want %d", n, kept)
		}
		r.MustCheck(t, agent)
	}
	change(10)
	holds(10, 10)
	for _, step := range []struct{ bound, changes, before, after int }{{3, 1, 3, 3}, {3, 2, 3, 3}, {-1, 1, 0, 0}, {5, 3, 0, 3}, {0, 4, 3, 7}} {
		r.opts.MaxVersions = step.bound
		r.Reopen()
		if n := len(r.MustVersions(t, "a")); n != step.before {
			t.Errorf("bound %d: %d versions shown", step.bound, n)
		}
		change(step.changes)
		holds(step.after, step.after)
	}
	r.MustDelete(t, "a")
	if n := keysOf(t, r.engine, agent, kv.Records)['h']; n != 0 {
		t.Errorf("%d versions are left", n)
	}
}

// testStageTogether commits changes of memory together with something else.
func testStageTogether(t *testing.T, r *rig) {
	r.MustSave(t, record.Record{ID: "old", Text: "old news"})
	r.MustSave(t, record.Record{ID: "bad", Text: "bad news"})
	save, err := r.StageSave(agent, record.Record{ID: "new", Text: "new news", TTL: time.Hour}, "")
	if err != nil {
		t.Fatal(err)
	}
	update, err := r.StageUpdate(t.Context(), agent, text("old", "old news, retold"), "")
	if err != nil {
		t.Fatal(err)
	}
	deletion, err := r.StageDelete(agent, memory.Deletion{ID: "bad"}, "")
	if err != nil {
		t.Fatal(err)
	}
	all := []*memory.Staging{save, update, deletion}
	mine := kv.Ref{Keyspace: kv.Log, Scope: agent}
	request := kv.Request{Refs: []kv.Ref{mine}, Stage: staged(all, func(tx *kv.Tx) { tx.Put(kv.Log, agent.Key('z'), []byte("mine")) })}
	for _, s := range all {
		request.Refs = append(request.Refs, s.Refs()...)
		request.Blind = append(request.Blind, s.Blind()...)
	}
	writer := kv.NewWriter(r.engine, nil)
	defer writer.Close()
	if err := save.Do(t.Context(), func() error { return writer.Do(t.Context(), request) }); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		s.Done(t.Context())
	}
	mustEqual(t, "saved", "new news", r.MustGet(t, "new").Text)
	mustEqual(t, "updated", "old news, retold", r.MustGet(t, "old").Text)
	if _, err := r.Get(t.Context(), agent, "bad"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	if values, err := r.engine.Get(t.Context(), kv.Log, agent.Key('z')); err != nil || string(values[0]) != "mine" {
		t.Errorf("the other's part: %q, %v", values, err)
	}
}

func staged(all []*memory.Staging, own func(*kv.Tx)) kv.Stage {
	return func(ctx context.Context, tx *kv.Tx) error {
		for _, s := range all {
			if err := s.Stage(ctx, tx); err != nil {
				return err
			}
		}
		own(tx)
		return nil
	}
}
