package server

import (
	"context"
	"errors"
	"testing"
)

// A stall is one send that waits through all ticks; sends that come and go are
// none, however long each takes in between.
func TestStallWatch(t *testing.T) {
	var w stallWatch
	ticks := func(n int, sends int64) (stalled bool) {
		for range n {
			stalled = w.stalled(sends)
		}
		return stalled
	}
	if ticks(100, 0) || ticks(100, 2) {
		t.Error("a stream that sends nothing stalled")
	}
	for sends := int64(3); sends < 100; sends += 2 {
		if ticks(stallTicks, sends) {
			t.Fatal("a send that ended stalled")
		}
	}
	if ticks(stallTicks, 101) || !ticks(1, 101) {
		t.Error("a send that does not end is noticed at the wrong tick")
	}
}

func TestEndStreamOutsideAStream(*testing.T) {
	endStream(context.Background(), errors.New("nobody hears"))
}
