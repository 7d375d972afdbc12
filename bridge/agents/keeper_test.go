package agents_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// takeOver opens a newer stream of an agent, which goes on where the last one was.
func takeOver(tb testing.TB, d *agents.Directory, id string) (*agents.Link, agents.Gap) {
	tb.Helper()
	link := MustOpen(tb, d, id)
	g := MustTake(tb, d, id)
	d.MarkGap(link, g)
	return link, g
}

// When the newest stream ends, the agent is served by an older one that is still
// open: what that one was given is its gap, also after a kill.
func TestOlderStreamHasTheGapAgain(t *testing.T) {
	for _, abnormal := range []bool{true, false} {
		dir := t.TempDir()
		withStore(t, dir, func(d *agents.Directory) {
			older := MustOpen(t, d, "one")
			mark(d, older, "a", 1, "x")
			newer, _ := takeOver(t, d, "one")
			for sequence := range uint64(3) {
				d.MarkSent(older, "a", sequence, "x")
				d.MarkSent(newer, "a", sequence, "x")
			}
			end(t, d, newer, abnormal)
			d.MarkSent(older, "a", 3, "x")
			other := MustOpen(t, d, "other") // its end stores what was marked before
			mark(d, other, "b", 1, "x")
			end(t, d, other, true)
		})
		withStore(t, dir, func(d *agents.Directory) {
			if got := delivered(MustTake(t, d, "one")); got != "map[a:3] []" {
				t.Errorf("abnormal %v: %s", abnormal, got)
			}
		})
	}
}

// A stream that breaks while an older one is open leaves its gap to the one that
// comes back, however far the older one has been served meanwhile: it may be dead.
func TestGapOfNewerStreamIsKept(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		older := MustOpen(t, d, "one")
		mark(d, older, "a", 1, "x")
		newer, _ := takeOver(t, d, "one")
		end(t, d, newer, true)
		d.MarkSent(older, "a", 9, "y")
		again, g := takeOver(t, d, "one")
		if g.Delivered["a"] != 1 {
			t.Errorf("taken %+v", g)
		}
		end(t, d, again, true)
		pass(time.Second)
		end(t, d, older, true) // found dead
		if g := MustTake(t, d, "one"); g.Delivered["a"] != 1 {
			t.Errorf("after the end of all: %+v", g)
		}
		noGap(t, d, "one")
	})
}

// An older stream that served the agent for long has a gap of its own.
func TestOlderStreamServedForLong(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		older := MustOpen(t, d, "one")
		mark(d, older, "a", 1, "x")
		newer, _ := takeOver(t, d, "one")
		end(t, d, newer, true)
		pass(time.Minute)
		d.MarkSent(older, "a", 9, "y")
		end(t, d, older, true)
		if g := MustTake(t, d, "one"); g.Delivered["a"] != 9 {
			t.Errorf("taken %+v", g)
		}
	})
}

// An agent that leaves by its newest stream is served by the older one, which has
// its own gap when it breaks.
func TestNewerStreamLeaves(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	older := MustOpen(t, d, "one")
	mark(d, older, "a", 1, "x")
	newer, _ := takeOver(t, d, "one")
	end(t, d, newer, false)
	d.MarkSent(older, "a", 2, "y")
	if g := MustTake(t, d, "one"); g.Delivered["a"] != 2 {
		t.Errorf("taken %+v", g)
	}
	end(t, d, older, false)
	noGap(t, d, "one")
}

// A link that was closed without a word gives way to an older one, too.
func TestNewerStreamClosedWithoutAWord(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		older := MustOpen(t, d, "one")
		mark(d, older, "a", 1, "x")
		newer, _ := takeOver(t, d, "one")
		newer.Close()
		pass(5 * time.Minute)
		d.MarkSent(older, "a", 2, "y")
		end(t, d, older, true)
		if g := MustTake(t, d, "one"); g.Delivered["a"] != 2 {
			t.Errorf("taken %+v", g)
		}
	})
}

// Streams are told when a newer one goes on in their place, and only then.
func TestGapTaken(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	told := func(l *agents.Link) bool {
		select {
		case <-l.GapTaken():
			return true
		default:
			return false
		}
	}
	older, marked := MustOpen(t, d, "one"), MustOpen(t, d, "two")
	mark(d, older, "a", 1, "x")
	mark(d, marked, "a", 1, "x")
	if told(older) || told(marked) {
		t.Error("told too early")
	}
	newer, _ := takeOver(t, d, "one")
	mark(d, MustOpen(t, d, "two"), "a", 1, "x")
	if !told(older) || told(newer) || !told(marked) {
		t.Errorf("older %v, newer %v, marked %v", told(older), told(newer), told(marked))
	}
	end(t, d, older, true)
	end(t, d, newer, true)
	if told(newer) {
		t.Error("the newest was told")
	}
}

// What is written again and again while a stream is open does not grow with the
// ids of what was sent, and volatile events write nothing at all.
func TestOpenGapsAreSmall(t *testing.T) {
	engine := &countingEngine{Engine: memkv.New(nil)}
	synctest.Test(t, func(t *testing.T) {
		d := MustDirectory(t, engine, nil)
		link := MustOpen(t, d, "one")
		id := func(i int) string { return fmt.Sprintf("%036d", i) }
		for i := range agents.MaxGapIDs {
			d.MarkSent(link, "topic", uint64(i+1), id(i))
		}
		pass(time.Second)
		if n := engine.gapBytes(t); n == 0 || n > 100 {
			t.Errorf("an open gap takes %d bytes", n)
		}
		before, _ := engine.commits()
		for i := range agents.MaxGapIDs {
			d.MarkSent(link, "", 0, id(i))
		}
		pass(time.Second)
		if after, _ := engine.commits(); after != before {
			t.Errorf("%d commits for volatile events", after-before)
		}
		end(t, d, link, true)
		if n := engine.gapBytes(t); n < agents.MaxGapIDs*36 {
			t.Errorf("a gap takes %d bytes", n)
		}
		if g := MustTake(t, d, "one"); len(g.RecentIDs) != agents.MaxGapIDs || g.Delivered["topic"] != agents.MaxGapIDs {
			t.Errorf("taken %d ids, %v", len(g.RecentIDs), g.Delivered)
		}
	})
}

// gapBytes is what the stored gaps take.
func (e *countingEngine) gapBytes(tb testing.TB) int {
	tb.Helper()
	n := 0
	scope := kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: "gaps"}
	for pair, err := range e.Scan(tb.Context(), kv.System, kv.Prefix(scope.AppendPrefix(nil))) {
		if err != nil {
			tb.Fatal(err)
		}
		n += len(pair.Value)
	}
	return n
}

// An agent that is deleted has no gap, whichever of its streams are open, and none
// afterwards.
func TestDeleteForgetsTheGap(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	older := MustOpen(t, d, "one")
	mark(d, older, "a", 1, "x")
	newer, _ := takeOver(t, d, "one")
	end(t, d, newer, true)
	if _, err := d.Delete(t.Context(), tenant, "one"); err != nil {
		t.Fatal(err)
	}
	mark(d, older, "a", 2, "y")
	end(t, d, older, true)
	noGap(t, d, "one")
}

// A registration that is present makes the agent active before its first stream,
// until it is freed; after the last stream it is disconnected like any other.
func TestPresentRegistration(t *testing.T) {
	w := &watcher{}
	opts := &agents.Options{IdleRegistration: time.Minute, OnChange: w.told}
	bubble(t, opts, func(t *testing.T, d *agents.Directory) {
		register := func() agents.Status {
			a, err := d.Register(tenant, "one", agents.Registration{Present: true})
			if err != nil {
				t.Fatal(err)
			}
			return a.Status
		}
		if status := register(); status != agents.Active {
			t.Errorf("registered: %v", status)
		}
		link := MustOpen(t, d, "one")
		link.Close()
		if a := MustGet(t, d, "one"); a.Status != agents.Disconnected {
			t.Errorf("ended: %v", a.Status)
		}
		if status := register(); status != agents.Active {
			t.Errorf("registered again: %v", status)
		}
		pass(2 * time.Minute)
		if _, there := d.Get(tenant, "one"); there {
			t.Error("it was not freed")
		}
		want := "default one active, default one disconnected, default one active, default one disconnected"
		if got := strings.Join(w.take(), ", "); got != want {
			t.Errorf("told of %s", got)
		}
	})
}

// What a caller wrote reaches the agent, and what the agent answered the caller,
// also where it says nothing.
func TestCallPassesUnchanged(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	MustRegister(t, d, "one", "do")
	link := MustOpen(t, d, "one")
	answers := ask(t.Context(), d, agents.ToolCall{Name: "do", Timeout: time.Minute, TimeoutMillis: 1<<63 - 1})
	call := <-link.Calls()
	if call.TimeoutMillis != 1<<63-1 {
		t.Errorf("got %+v", call)
	}
	link.Complete(call.ID, agents.ToolResult{HasError: true})
	if a := <-answers; a.err != nil || !a.result.HasError {
		t.Errorf("got %+v", a)
	}
}

// An id or a tenant is told in words that callers may see.
func TestStateErrorsAreTyped(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	bad, ok := errors.AsType[*invalid.Error](d.SaveState(t.Context(), tenant, "", agents.State{}))
	if !ok || bad.Field != "agent_id" || bad.Problem != "cannot be empty" {
		t.Errorf("got %+v", bad)
	}
}
