package memory_test

import (
	"errors"
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
