package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Of many changes at once that would take the last places beside pinned records, by whatever
// way, as many succeed as there are places.
func TestLastPlacesBesidePinned(t *testing.T) {
	t.Parallel()
	const limit, places = 12, 2
	for round := range 30 {
		s := instructed(t, &memory.Options{MaxRecords: limit})
		ctx := t.Context()
		scope := kv.AgentScope("default", fmt.Sprint("agent", round))
		archived, err := s.Save(ctx, scope, record.Record{Text: "in the archive", Archived: true}, "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range limit - places {
			if _, err := s.Save(ctx, scope, record.Record{Text: fmt.Sprint("pinned ", i), Pinned: true}, ""); err != nil {
				t.Fatal(err)
			}
		}
		loose, err := s.Save(ctx, scope, record.Record{Text: "loose"}, "")
		if err != nil {
			t.Fatal(err)
		}
		pinned := func(i int) record.Record { return record.Record{Text: fmt.Sprint("late ", i), Pinned: true} }
		ways := []func(ctx context.Context, i int) error{
			func(ctx context.Context, i int) error {
				_, err := s.SaveAs(ctx, scope, pinned(i), memory.Saving{})
				return err
			},
			func(ctx context.Context, i int) error {
				r := pinned(i)
				r.Key = "key"
				_, err := s.SaveAs(ctx, scope, r, memory.Saving{Replace: true})
				return err
			},
			func(ctx context.Context, i int) error {
				_, err := s.SaveBatchAs(ctx, scope, []record.Record{pinned(i), {Text: "not pinned"}}, memory.Saving{})
				return err
			},
			func(ctx context.Context, _ int) error {
				_, err := s.Update(ctx, scope, memory.Update{ID: loose.ID, Fields: memory.PinnedField, Values: record.Record{Pinned: true}}, "")
				return err
			},
			func(ctx context.Context, _ int) error {
				u := memory.Update{ID: archived.ID, Fields: memory.PinnedField | memory.ArchivedField, Values: record.Record{Pinned: true}}
				_, err := s.Update(ctx, scope, u, "")
				return err
			},
		}
		var all sync.WaitGroup
		var refused atomic.Int64
		for i := range 4 * len(ways) {
			all.Go(func() {
				err := ways[i%len(ways)](ctx, i)
				switch {
				case errors.Is(err, memory.ErrPinned):
					refused.Add(1)
				case err != nil && !errors.Is(err, memory.ErrNotFound):
					t.Error(err)
				}
			})
		}
		all.Wait()
		n := 0
		page, err := s.List(ctx, scope, memory.Listing{PageSize: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if r.Pinned && !r.Archived {
				n++
			}
		}
		if n > limit || refused.Load() == 0 {
			t.Fatalf("%d of %d records are pinned; %d changes were refused", n, limit, refused.Load())
		}
	}
}
