package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MustList turns all pages and returns the ids.
func (r *rig) MustList(tb testing.TB, l memory.Listing) (ids []string, pages int) {
	tb.Helper()
	for {
		page, err := r.List(tb.Context(), agent, l)
		if err != nil {
			tb.Fatalf("list %+v: %v", l, err)
		}
		for _, record := range page.Records {
			ids = append(ids, record.ID)
		}
		pages++
		if l.PageToken = page.NextPageToken; l.PageToken == "" {
			return ids, pages
		}
	}
}

func testList(t *testing.T, r *rig) {
	if all, _ := r.MustList(t, memory.Listing{}); len(all) != 0 {
		t.Errorf("nothing saved: %q", all)
	}
	var want, even []string
	for i := range 23 {
		// Ids sort another way than they came.
		id := fmt.Sprintf("id-%02d", (i*7)%23)
		r.MustSave(t, record.Record{ID: id, Text: "note", Tags: []string{fmt.Sprint("mod", i%2)}})
		if want = append(want, id); i%2 == 0 {
			even = append(even, id)
		}
	}
	r.MustSave(t, record.Record{ID: "short", Text: "gone soon", TTL: time.Second})
	r.MustSave(t, record.Record{ID: "tier 2", Text: "another tier", Tier: 2})
	r.clock.Set(start.Add(time.Second))
	r.MustUpdate(t, text(want[4], "changed, and where it was"))
	r.MustUpdate(t, memory.Update{ID: want[8], Fields: memory.ArchivedField, Values: record.Record{Archived: true}})
	reversed := slices.Clone(want)
	slices.Reverse(reversed)
	for range 2 { // from the tail, then packed
		for _, tt := range []struct {
			name    string
			listing memory.Listing
			want    []string
			pages   int
		}{
			{"all at once", memory.Listing{}, want, 1},
			{"pages", memory.Listing{PageSize: 5}, want, 5},
			{"newest first", memory.Listing{PageSize: 10, NewestFirst: true}, reversed, 3},
			{"filtered", memory.Listing{PageSize: 6, Filter: "tags:mod0"}, even, 2},
			{"nothing", memory.Listing{Filter: "tags:nothing"}, nil, 1},
			{"tier", memory.Listing{Tiers: []int{1, 2}}, []string{"tier 2"}, 1},
			{"tiers", memory.Listing{Tiers: []int{2, 4}}, append(slices.Clone(want), "tier 2"), 1},
		} {
			got, pages := r.MustList(t, tt.listing)
			mustEqual(t, tt.name, tt.want, got)
			mustEqual(t, tt.name+": pages", tt.pages, pages)
		}
		r.MustPack(t)
	}
}

func testListWhileChanging(t *testing.T, r *rig) {
	r.fill(t, 6)
	first, err := r.List(t.Context(), agent, memory.Listing{PageSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	r.MustUpdate(t, text(first.Records[0].ID, "changed"))
	r.MustDelete(t, first.Records[2].ID)
	late := r.MustSave(t, record.Record{Text: "late"})
	rest, err := r.List(t.Context(), agent, memory.Listing{PageSize: 10, PageToken: first.NextPageToken})
	if err != nil || len(rest.Records) != 4 || rest.Records[3].ID != late.ID {
		t.Errorf("%d on the second page, %v", len(rest.Records), err)
	}
}

func testListPages(t *testing.T, r *rig) {
	for range 3 {
		for range 8 {
			r.MustSave(t, record.Record{Text: strings.Repeat("long ", 50<<10)})
		}
	}
	if all, pages := r.MustList(t, memory.Listing{}); len(all) != 24 || pages < 6 {
		t.Errorf("%d long records on %d pages", len(all), pages)
	}
	page, err := r.List(t.Context(), agent, memory.Listing{PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]memory.Listing{
		"page_size":  {PageSize: memory.MaxPageSize + 1},
		"tiers":      {Tiers: []int{5}},
		"page_token": {PageToken: "?"},
		"filter":     {Filter: strings.Repeat("x", filter.MaxBytes+1)},
	} {
		var bad *invalid.Error
		if _, err := r.List(t.Context(), agent, l); !errors.As(err, &bad) || bad.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, l := range map[string]memory.Listing{
		"filter": {Filter: "tags:x"}, "order": {NewestFirst: true}, "tiers": {Tiers: []int{2}},
	} {
		l.PageToken = page.NextPageToken
		if _, err := r.List(t.Context(), agent, l); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("token of another %s: %v", name, err)
		}
	}
	other := kv.AgentScope("default", "other")
	if _, err := r.List(t.Context(), other, memory.Listing{PageToken: page.NextPageToken}); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("token of another scope: %v", err)
	}
	if _, err := r.List(t.Context(), agent, memory.Listing{Filter: "nonsense = 1"}); !errors.Is(err, filter.ErrInvalid) {
		t.Errorf("bad filter: %v", err)
	}
}
