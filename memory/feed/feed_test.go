package feed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var scope = kv.AgentScope("default", "a")

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// A feed has the deletions from its beginning on, in order, and of many the last ones.
func TestDeleted(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	commit := func(do func(ctx context.Context, tx *kv.Tx) error) {
		t.Helper()
		must(t, writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{{Keyspace: kv.Records, Scope: scope}}, Stage: do}))
	}
	gone := func(ids ...string) {
		t.Helper()
		commit(func(ctx context.Context, tx *kv.Tx) error { return feed.Gone(ctx, tx, scope, ids) })
	}
	gone("before anybody followed")
	for range 2 {
		commit(func(ctx context.Context, tx *kv.Tx) error { return feed.Begin(ctx, tx, scope) })
	}
	first, err := feed.Read(t.Context(), engine, scope)
	must(t, err)
	if first.ID == 0 || first.First != 1 || first.Last != 0 {
		t.Errorf("begun: %+v", first)
	}
	const more = 250
	for n := 0; n < feed.MaxKept+more; n += 1000 {
		ids := make([]string, min(1000, feed.MaxKept+more-n))
		for i := range ids {
			ids[i] = fmt.Sprint(n + i + 1)
		}
		gone(ids...)
	}
	head, err := feed.Read(t.Context(), engine, scope)
	must(t, err)
	if head.ID != first.ID || head.First != more+1 || head.Last != feed.MaxKept+more {
		t.Errorf("after many: %+v", head)
	}
	got, err := feed.Deleted(t.Context(), engine, scope, head.Last-3, 2)
	must(t, err)
	if want := []string{fmt.Sprint(head.Last - 2), fmt.Sprint(head.Last - 1)}; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the last ones: %v, want %v", got, want)
	}
	if got, err = feed.Deleted(t.Context(), engine, scope, head.Last, 2); err != nil || len(got) != 0 {
		t.Errorf("behind the last: %v, %v", got, err)
	}
	must(t, feed.Check(t.Context(), engine, scope, t.Errorf))
}

// FuzzParse wants no panic on garbage, and positions to be read as they were written.
func FuzzParse(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint32(3), uint64(4), "AA")
	f.Fuzz(func(t *testing.T, id, incarnation uint64, ordinal uint32, deletion uint64, garbage string) {
		_, _ = feed.Parse(garbage)
		want := feed.Position{Feed: id, Incarnation: incarnation, Ordinal: ordinal, Deletion: deletion}
		got, err := feed.Parse(want.String())
		if id == 0 {
			if !errors.Is(err, feed.ErrNotPosition) {
				t.Errorf("without a feed: %v", err)
			}
			return
		}
		if err != nil || got != want || len(want.String()) > 64 {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
}
