package agents_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
)

// MustBeat opens a stream with a heartbeat of one second.
func MustBeat(tb testing.TB, d *agents.Directory, id string) *agents.Link {
	tb.Helper()
	link, err := d.Open(tenant, id, agents.OpenOptions{Heartbeat: time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	return link
}

// Three missed heartbeats make an agent inactive, the next one active again.
func TestHeartbeats(t *testing.T) {
	var w watcher
	bubble(t, &agents.Options{OnChange: w.told}, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "one")
		link := MustBeat(t, d, "one")
		for range 10 {
			pass(2900 * time.Millisecond)
			link.Heartbeat()
		}
		beat := time.Now()
		pass(2900 * time.Millisecond)
		if a := MustGet(t, d, "one"); a.Status != agents.Active || a.LastSeen != beat {
			t.Errorf("with heartbeats: %v, seen %v", a.Status, a.LastSeen)
		}
		pass(200 * time.Millisecond)
		if a := MustGet(t, d, "one"); a.Status != agents.Inactive {
			t.Errorf("without: %v", a.Status)
		}
		pass(time.Hour)
		link.Heartbeat()
		if a := MustGet(t, d, "one"); a.Status != agents.Active {
			t.Errorf("with the next one: %v", a.Status)
		}
		pass(4 * time.Second)
		link.Close()
		want := []string{
			"default one idle", "default one active", "default one inactive",
			"default one active", "default one inactive", "default one disconnected",
		}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		link.Heartbeat()
		if got := w.take(); got != nil {
			t.Errorf("a heartbeat on a closed link: %v", got)
		}
	})
}

// A stream without heartbeats keeps its agent active for as long as it is open,
// also beside one on which they are missing.
func TestStreamsWithoutHeartbeats(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		silent := MustOpen(t, d, "one")
		beating := MustBeat(t, d, "one")
		defer beating.Close()
		pass(24 * time.Hour)
		if a := MustGet(t, d, "one"); a.Status != agents.Active || a.Streams != 2 {
			t.Errorf("with both: %+v", a)
		}
		silent.Close()
		if a := MustGet(t, d, "one"); a.Status != agents.Inactive || a.Streams != 1 {
			t.Errorf("without the silent one: %+v", a)
		}
	})
}

// Many agents, each with a deadline of its own.
func TestManyHeartbeats(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		for i := range 100 {
			link, err := d.Open(tenant, fmt.Sprintf("%03d", i), agents.OpenOptions{Heartbeat: time.Duration(100-i) * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
		}
		for _, passed := range []int{0, 30, 90, 150, 300} {
			pass(time.Until(synctestStart.Add(time.Duration(passed)*time.Second + 500*time.Millisecond)))
			inactive := 0
			for i := range 100 {
				if MustGet(t, d, fmt.Sprintf("%03d", i)).Status == agents.Inactive {
					inactive++
				}
			}
			if want := passed / 3; inactive != want {
				t.Errorf("after %d s %d are inactive, want %d", passed, inactive, want)
			}
		}
	})
}

// synctestStart is when every bubble begins.
var synctestStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// The end of an old stream takes nothing from the new one.
func TestGenerations(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	MustRegister(t, d, "one", "echo")
	older := MustOpen(t, d, "one")
	newer := MustOpen(t, d, "one")
	if older.Generation() >= newer.Generation() {
		t.Errorf("generations %d and %d", older.Generation(), newer.Generation())
	}
	answers := ask(t.Context(), d, agents.ToolCall{Name: "echo"})
	call := <-newer.Calls()
	older.Close()
	if a := MustGet(t, d, "one"); a.Status != agents.Active || a.Streams != 1 || a.Generation != newer.Generation() {
		t.Errorf("after the old stream ended: %+v", a)
	}
	if !newer.Complete(call.ID, agents.ToolResult{Output: "x"}) || (<-answers).result.Output != "x" {
		t.Error("the call of the new stream was lost")
	}
	newer.Close()
	if a := MustGet(t, d, "one"); a.Status != agents.Disconnected || a.Streams != 0 || a.Generation != 0 {
		t.Errorf("after both: %+v", a)
	}
	if link := MustOpen(t, d, "one"); !cmp.Equal(link.Registration().Capabilities, []string{"echo"}) || link.Generation() <= newer.Generation() {
		t.Errorf("opened again: %+v", link.Registration())
	}
}

// A stream keeps the registration with which it began.
func TestLinkRegistration(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	MustRegister(t, d, "one", "old")
	link := MustOpen(t, d, "one")
	MustRegister(t, d, "one", "new")
	if got := link.Registration().Tools[0].Name; got != "old" {
		t.Errorf("got %s", got)
	}
	if _, ok := d.Lookup(tenant, "new"); !ok {
		t.Error("the new registration has no effect")
	}
}

// Streams need no registration, and ids may be anything; such an agent is in the
// directory while a stream is open.
func TestUnregistered(t *testing.T) {
	var w watcher
	bubble(t, &agents.Options{OnChange: w.told, MaxStreams: 2}, func(t *testing.T, d *agents.Directory) {
		for _, id := range []string{"", "\x00", "unknown"} {
			first, second := MustOpen(t, d, id), MustOpen(t, d, id)
			if a := MustGet(t, d, id); a.Streams != 2 {
				t.Errorf("%q: %+v", id, a)
			}
			if _, err := d.Open(tenant, id, agents.OpenOptions{}); err == nil {
				t.Errorf("%q: a third stream of two", id)
			}
			first.Close()
			second.Close()
			if _, ok := d.Get(tenant, id); ok {
				t.Errorf("%q is in the directory without a stream", id)
			}
			if diff := cmp.Diff([]string{"default " + id + " active", "default " + id + " disconnected"}, w.take()); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		}
	})
}

// A registration without a stream is freed, and not before its time; a stream in
// between puts it off.
func TestIdleRegistrations(t *testing.T) {
	var w watcher
	bubble(t, &agents.Options{OnChange: w.told, IdleRegistration: time.Minute}, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "never", "tool")
		MustRegister(t, d, "once", "tool")
		link := MustOpen(t, d, "once")
		pass(59 * time.Second)
		MustGet(t, d, "never")
		pass(2 * time.Second)
		if _, ok := d.Get(tenant, "never"); ok {
			t.Error("never: not freed")
		}
		pass(time.Hour)
		link.Close()
		pass(59 * time.Second)
		if link = MustOpen(t, d, "once"); len(link.Registration().Tools) != 1 {
			t.Errorf("reopened: %+v", link.Registration())
		}
		link.Close()
		pass(59 * time.Second)
		MustRegister(t, d, "once", "tool")
		pass(59 * time.Second)
		MustGet(t, d, "once")
		pass(2 * time.Second)
		if _, ok := d.Get(tenant, "once"); ok {
			t.Error("once: not freed")
		}
		if tool, ok := d.Lookup(tenant, "tool"); !ok || tool.Connected || tool.AgentID != "once" {
			t.Errorf("the tool is known as %+v", tool)
		}
		pass(agents.DefaultKeepTools)
		if _, ok := d.Lookup(tenant, "tool"); ok {
			t.Error("its tool is still known")
		}
		want := []string{
			"default never idle", "default once idle", "default once active", "default never disconnected",
			"default once disconnected", "default once active", "default once disconnected",
			"default once idle", "default once disconnected",
		}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
}

// Whoever is told may take long and ask the directory: it is never called under
// a lock, and what waits meanwhile comes in order.
func TestOnChangeMayBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watcher
		var d *agents.Directory
		d = MustDirectory(t, nil, &agents.Options{OnChange: func(tenant string, c agents.Change) {
			time.Sleep(time.Second)
			d.Get(tenant, "one")
			w.told(tenant, c)
		}})
		for range 3 {
			MustOpen(t, d, "one").Close()
		}
		if got := w.take(); got != nil {
			t.Errorf("told at once: %v", got)
		}
		pass(10 * time.Second)
		want := []string{
			"default one active", "default one disconnected", "default one active",
			"default one disconnected", "default one active", "default one disconnected",
		}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		MustOpen(t, d, "two")
		synctest.Wait()
		MustOpen(t, d, "three")
	})
}

func TestStatusNames(t *testing.T) {
	for status, want := range map[agents.Status]string{
		agents.Active: "active", agents.Idle: "idle", agents.Inactive: "inactive", agents.Disconnected: "disconnected", 9: "unknown",
	} {
		if got := status.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
