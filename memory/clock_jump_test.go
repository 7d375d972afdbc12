package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// A clock that jumps back and forth disturbs neither the order of arrival nor
// what queries find; what expired while it was ahead is there again when it is
// back, unless it was swept.
func TestClockJumps(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	var want []string
	for i, jump := range []time.Duration{0, -30 * 24 * time.Hour, time.Hour, 400 * 24 * time.Hour, -time.Minute} {
		r.clock.Set(start.Add(jump))
		id := fmt.Sprintf("r%d", i)
		r.MustSave(t, record.Record{ID: id, Text: "harbour " + id})
		r.MustUpdate(t, memory.Update{ID: id, Fields: memory.TagsField, Values: record.Record{Tags: []string{"t"}}})
		want = append(want, id)
	}
	if got, _ := r.MustList(t, memory.Listing{}); !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	query := question.Question{Text: "harbour", Limit: 10, RecencyWeight: 1, RecencyHalfLife: time.Hour}
	if n := len(r.MustQuery(t, query).Hits); n != len(want) {
		t.Errorf("%d hits, want %d", n, len(want))
	}

	r.clock.Set(start)
	r.MustSave(t, record.Record{ID: "brief", Text: "brief", TTL: time.Hour, Key: "k"})
	r.clock.Set(start.Add(2 * time.Hour))
	if _, err := r.Get(t.Context(), agent, "brief"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("expired record: %v", err)
	}
	r.clock.Set(start.Add(-2 * time.Hour))
	if n := r.MustSweep(t); n != 0 {
		t.Errorf("swept %d records", n)
	}
	if got, err := r.GetByKey(t.Context(), agent, "k"); err != nil || got.ID != "brief" {
		t.Errorf("record %q, %v", got.ID, err)
	}
}
