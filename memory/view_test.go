package memory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// A view has the records as its snapshot has them, whatever is saved, changed and
// deleted meanwhile, and says how far that is. When the snapshot is too old it says so.
func TestViewIsOfOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		writer := kv.NewWriter(engine, nil)
		store := memory.New(engine, writer, &memory.Options{SweepEvery: -1})
		defer func() {
			for _, c := range []func() error{store.Close, writer.Close, engine.Close} {
				if err := c(); err != nil {
					t.Error(err)
				}
			}
		}()
		scope := kv.AgentScope("default", "alice")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		save := func(r record.Record) {
			t.Helper()
			_, err := store.Save(t.Context(), scope, r, "")
			must(err)
		}
		save(record.Record{ID: "a", Text: "green tea"})
		save(record.Record{ID: "b", Text: "black tea"})
		snapshot, err := engine.Snapshot(t.Context())
		must(err)
		defer snapshot.Close()
		view := store.At(snapshot)
		save(record.Record{ID: "c", Text: "white tea"})
		_, err = store.Update(t.Context(), scope, memory.Update{ID: "a", Fields: memory.TextField, Values: record.Record{Text: "no tea"}}, "")
		must(err)
		_, err = store.Delete(t.Context(), scope, memory.Deletion{ID: "b"}, "")
		must(err)
		for _, now := range []bool{false, true} {
			from, texts, ids := view, "green tea", "ab"
			if now {
				from, texts, ids = store.At(engine), "no tea", "ac"
			}
			records, err := from.GetAll(t.Context(), scope, []string{"a", "b", "c"})
			must(err)
			if records[0].Text != texts || (records[1] == nil) != now || (records[2] != nil) != now {
				t.Errorf("now %t: records %v", now, records)
			}
			answer, err := from.QueryScopes(t.Context(), []kv.Scope{scope}, question.Question{Text: "tea"})
			must(err)
			page, err := from.List(t.Context(), scope, memory.Listing{})
			must(err)
			sequence, err := from.Sequence(t.Context(), scope)
			must(err)
			listed := page.Records[0].ID + page.Records[1].ID
			if len(answer.Hits) != 2 || len(page.Records) != 2 || listed != ids || sequence != answer.Receipt.IndexSequence {
				t.Errorf("now %t: %d hits, listed %q, sequence %d, of the query %d", now, len(answer.Hits), listed, sequence, answer.Receipt.IndexSequence)
			}
		}
		time.Sleep(kv.SnapshotLife + 1)
		if _, err := view.QueryScopes(t.Context(), []kv.Scope{scope}, question.Question{Text: "tea"}); !errors.Is(err, kv.ErrTooOld) {
			t.Errorf("later: %v", err)
		}
	})
}

// What a view answered is known to the next one until something in the scope changes or
// expires, and to nobody else; what the caller does to an answer changes no other.
func TestViewRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		writer := kv.NewWriter(engine, nil)
		store := memory.New(engine, writer, &memory.Options{SweepEvery: -1})
		defer func() { store.Close(); writer.Close(); engine.Close() }()
		alice, bob := kv.AgentScope("default", "alice"), kv.AgentScope("default", "bob")
		save := func(scope kv.Scope, r record.Record) {
			t.Helper()
			if _, err := store.Save(t.Context(), scope, r, ""); err != nil {
				t.Fatal(err)
			}
		}
		save(alice, record.Record{ID: "a", Text: "green tea"})
		save(alice, record.Record{ID: "b", Text: "black tea", ExpireTime: time.Now().Add(time.Hour)})
		save(bob, record.Record{ID: "x", Text: "red tea"})
		// ask returns the ids that a query, a listing and a reading by id find.
		ask := func(scope kv.Scope, only bool) (ids string, err error) {
			t.Helper()
			snapshot, err := engine.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer snapshot.Close()
			view := store.At(snapshot)
			if only {
				view = view.Remembered()
			}
			answer, err := view.QueryScopes(t.Context(), []kv.Scope{scope}, question.Question{Text: "which tea", Limit: 9})
			if err != nil {
				return "", err
			}
			found := make([]string, 0, len(answer.Hits))
			for i := range answer.Hits {
				found = append(found, answer.Hits[i].Record.ID)
				answer.Hits[i] = memory.Hit{}
			}
			slices.Sort(found)
			page, err := view.List(t.Context(), scope, memory.Listing{PageSize: 9})
			if err != nil {
				return "", err
			}
			for i := range page.Records {
				found = append(found, page.Records[i].ID)
				page.Records[i] = record.Record{}
			}
			records, err := view.GetAll(t.Context(), scope, []string{"a", "b", "c", "x"})
			if err != nil {
				return "", err
			}
			for i, r := range records {
				if r != nil {
					found = append(found, r.ID)
				}
				records[i] = nil
			}
			return strings.Join(found, ""), nil
		}
		check := func(when string, scope kv.Scope, want string) {
			t.Helper()
			if _, err := ask(scope, true); !errors.Is(err, memory.ErrNotRemembered) {
				t.Errorf("%s: %v, want ErrNotRemembered", when, err)
			}
			for range 2 {
				if got, err := ask(scope, false); got != want || err != nil {
					t.Errorf("%s: %s, %v, want %s", when, got, err, want)
				}
				if got, err := ask(scope, true); got != want || err != nil {
					t.Errorf("%s: remembered %s, %v, want %s", when, got, err, want)
				}
			}
		}
		check("at first", alice, "ababab")
		check("of another agent", bob, "xxx")
		save(alice, record.Record{ID: "c", Text: "white tea"})
		check("after a save", alice, "abcabcabc")
		if got, err := ask(bob, true); got != "xxx" || err != nil {
			t.Errorf("what another agent saves makes bob's answer %s, %v", got, err)
		}
		if _, err := store.Delete(t.Context(), alice, memory.Deletion{ID: "a"}, ""); err != nil {
			t.Fatal(err)
		}
		check("after a deletion", alice, "bcbcbc")
		time.Sleep(59 * time.Minute)
		if got, _ := ask(alice, false); got != "bcbcbc" {
			t.Errorf("before the expiry: %s", got)
		}
		time.Sleep(time.Minute)
		if got, _ := ask(alice, false); got != "ccc" {
			t.Errorf("what has expired is remembered: %s", got)
		}
	})
}

// What was made of several answers is made anew when one of them would be: after a change in
// one of its scopes, when a record expires, when it asks something else, and where one of them
// is not remembered.
func TestWholeOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		writer := kv.NewWriter(engine, nil)
		store := memory.New(engine, writer, &memory.Options{SweepEvery: -1})
		defer func() { store.Close(); writer.Close(); engine.Close() }()
		alice, bob := kv.AgentScope("default", "alice"), kv.AgentScope("default", "bob")
		save := func(scope kv.Scope, r record.Record) {
			t.Helper()
			if _, err := store.Save(t.Context(), scope, r, ""); err != nil {
				t.Fatal(err)
			}
		}
		save(alice, record.Record{ID: "a", Text: "green tea"})
		save(bob, record.Record{ID: "b", Text: "black tea", ExpireTime: time.Now().Add(time.Hour)})
		scopes := []kv.Scope{alice, bob}
		ask := func(q question.Question, part string, only bool) (ids string, made bool, err error) {
			t.Helper()
			snapshot, err := engine.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer snapshot.Close()
			view := store.At(snapshot)
			if only {
				view = view.Remembered()
			}
			ids, err = memory.Whole(t.Context(), view, scopes, []string{part}, func(view memory.View) (string, int, error) {
				made = true
				all, found := make([]string, 0, 4), 0
				for _, text := range []string{"tea", "which tea"} {
					q.Text = text
					answer, err := view.QueryScopes(t.Context(), scopes, q)
					if err != nil {
						return "", 0, err
					}
					for _, hit := range answer.Hits {
						all = append(all, hit.Record.ID)
					}
					found += len(answer.Hits)
				}
				slices.Sort(all)
				return strings.Join(slices.Compact(all), ""), found, nil
			})
			return ids, made, err
		}
		plain := question.Question{Limit: 9}
		check := func(when, part, want string) {
			t.Helper()
			if _, _, err := ask(plain, part, true); !errors.Is(err, memory.ErrNotRemembered) {
				t.Errorf("%s: %v, want ErrNotRemembered", when, err)
			}
			for i := range 3 {
				got, made, err := ask(plain, part, i == 2)
				if got != want || err != nil || made != (i == 0) {
					t.Errorf("%s, asked %d: %s, %v, made %t; want %s", when, i, got, err, made, want)
				}
			}
		}
		check("at first", "x", "ab")
		if got, made, err := ask(plain, "y", true); got != "ab" || !made || err != nil {
			t.Errorf("of remembered answers: %s, %t, %v", got, made, err)
		}
		save(bob, record.Record{ID: "c", Text: "white tea"})
		check("after a save", "x", "abc")
		time.Sleep(time.Hour)
		check("when one has expired", "x", "ac")
		for range 2 {
			if _, made, err := ask(question.Question{Limit: 9, Explain: true}, "z", false); !made || err != nil {
				t.Errorf("of an answer that is not remembered: made %t, %v", made, err)
			}
		}
	})
}
