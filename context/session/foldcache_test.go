package session

import (
	"strconv"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func cached(number uint64, bytes int) history.Fold {
	return history.Fold{Batch: number, Text: strings.Repeat("x", bytes), Spans: []history.Span{{First: number, Last: number}}}
}

// The sessions that were asked for last stay, and what they take is bounded.
func TestFoldCacheIsBounded(t *testing.T) {
	c := newFoldCache(9000)
	at := func(id string) journal { return journal{kv.AgentScope("t", "a"), id} }
	for _, id := range []string{"one", "two", "three"} {
		c.keep(at(id), []uint64{1}, []history.Fold{cached(1, 3000)})
		c.of(at("one"))
	}
	for id, want := range map[string]int{"one": 1, "two": 0, "three": 1} {
		if got := len(c.of(at(id)).folds); got != want {
			t.Errorf("session %s: %d folds are known, want %d", id, got, want)
		}
	}
	c.keep(at("one"), []uint64{1, 2}, []history.Fold{cached(1, 10), cached(2, 10)})
	if got := c.of(at("one")); len(got.folds) != 2 {
		t.Errorf("known of one is %+v", got)
	}
	c.keep(at("huge"), []uint64{1}, []history.Fold{cached(1, 20_000)})
	if bytes := c.sessions.Weight(); bytes > 9000 || len(c.of(at("huge")).folds) != 0 || len(c.of(at("one")).folds) != 2 {
		t.Errorf("%d bytes are kept, with what is over the limit or without what is not", bytes)
	}
}

// Sessions whose folds were all undone take something, too.
func TestFoldCacheForgetsEmptySessions(t *testing.T) {
	c := newFoldCache(9000)
	for i := range 1000 {
		c.keep(journal{kv.AgentScope("t", "a"), strconv.Itoa(i)}, nil, nil)
	}
	if n := c.sessions.Len(); n == 0 || n > 9000/sessionBytes {
		t.Errorf("%d sessions are known", n)
	}
}

// Of a session only what is new is read; what is no longer live is not given.
func TestFoldCacheMisses(t *testing.T) {
	c := newFoldCache(1 << 20)
	j := journal{kv.AgentScope("t", "a"), "s"}
	c.keep(j, []uint64{1, 3, 4}, []history.Fold{cached(1, 1), cached(3, 1), cached(4, 1)})
	known := c.of(j)
	missing := known.missing([]uint64{3, 5, 6})
	if len(missing) != 2 || missing[0] != 5 || missing[1] != 6 {
		t.Fatalf("missing %v", missing)
	}
	folds := known.with([]uint64{3, 5, 6}, []history.Fold{cached(5, 1), cached(6, 1)})
	for i, want := range []uint64{3, 5, 6} {
		if folds[i].Batch != want {
			t.Errorf("fold %d is that of %d, want %d", i, folds[i].Batch, want)
		}
	}
}
