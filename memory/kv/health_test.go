package kv_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func TestHealth(t *testing.T) {
	var h kv.Health
	was, changed := h.Condition()
	if was.Failed != nil || len(was.Damaged) != 0 || was.String() != "ok" {
		t.Errorf("at first: %v", was)
	}
	wantChanged := func(what string, want bool) kv.Condition {
		t.Helper()
		got := false
		select {
		case <-changed:
			got = true
		default:
		}
		if got != want {
			t.Errorf("%s: told of a change: %v, want %v", what, got, want)
		}
		c, next := h.Condition()
		changed = next
		return c
	}
	h.Recover()
	wantChanged("recovering from nothing", false)
	h.Fail(kv.ErrFull)
	if c := wantChanged("full", true); !errors.Is(c.Failed, kv.ErrFull) {
		t.Errorf("full: %v", c)
	}
	h.Fail(kv.ErrFull)
	wantChanged("full again", false)
	h.Recover()
	if c := wantChanged("room again", true); c.Failed != nil {
		t.Errorf("room again: %v", c)
	}
	h.Damage(kv.Events, kv.ErrDamaged)
	damaged := wantChanged("damaged", true)
	h.Damage(kv.Events, errors.New("more of it"))
	wantChanged("damaged again", false)
	h.Damage(kv.Log, kv.ErrDamaged)
	if len(damaged.Damaged) != 1 || !errors.Is(damaged.Damaged[kv.Events], kv.ErrDamaged) {
		t.Errorf("a condition that was handed out has changed: %v", damaged)
	}
	wantChanged("damaged elsewhere", true)
	h.Whole(map[kv.Keyspace]error{kv.Log: kv.ErrDamaged})
	if c := wantChanged("read back", true); len(c.Damaged) != 1 || c.Damaged[kv.Log] == nil {
		t.Errorf("read back: %v", c)
	}
	h.Whole(nil)
	h.Fail(kv.ErrFull)
	h.Fail(kv.ErrFailed)
	h.Recover()
	h.Fail(kv.ErrFull)
	if c := wantChanged("failed", true); !errors.Is(c.Failed, kv.ErrFailed) || len(c.Damaged) != 0 {
		t.Errorf("failed for good: %v", c)
	}
}
