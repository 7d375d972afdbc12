package agents_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/share"
)

func TestRegister(t *testing.T) {
	now := time.Unix(1000, 0)
	d := MustDirectory(t, nil, &agents.Options{Now: func() time.Time { return now }})
	tools := []agents.ProvidedTool{
		{Name: "b", Description: "first"},
		{Name: "a", Schema: "{}", Metadata: map[string]string{"k": "v"}},
		{Name: "b", Description: "second"},
	}
	topics := []string{"y", "x", "y"}
	a, err := d.Register(tenant, "one", agents.Registration{
		Topics: topics, Tools: tools, Kind: "worker",
		Metadata:     map[string]string{"team": "red"},
		Capabilities: []string{"a", "plan", "plan"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := agents.Agent{
		ID: "one", Status: agents.Idle, LastSeen: now,
		Registration: agents.Registration{
			Topics:       []string{"y", "x"},
			Tools:        []agents.ProvidedTool{{Name: "b", Description: "second", Usable: true}, tools[1]},
			Metadata:     map[string]string{"team": "red"},
			Capabilities: []string{"b", "a", "plan"},
			Kind:         "worker",
		},
	}
	want.Tools[1].Usable = true
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
	topics[0], tools[1].Metadata["k"] = "changed", "changed"
	want.Tools[1].Metadata = map[string]string{"k": "v"}
	if diff := cmp.Diff(want, MustGet(t, d, "one")); diff != "" {
		t.Errorf("changing what was given changed the entry (-want +got):\n%s", diff)
	}
	MustRegister(t, d, "one", "c")
	if got := MustGet(t, d, "one"); len(got.Topics) > 0 || got.Metadata != nil || !cmp.Equal(got.Capabilities, []string{"c"}) {
		t.Errorf("registered again: %+v", got)
	}
	if _, ok := d.Lookup(tenant, "a"); ok {
		t.Error("a tool of the registration before is still there")
	}
}

func TestRegisterRefuses(t *testing.T) {
	d := MustDirectory(t, nil, &agents.Options{MaxAgents: 2, MaxTools: 2, MaxBytes: 4096})
	MustRegister(t, d, "one", "a")
	for _, tt := range []struct {
		name, id string
		r        agents.Registration
		want     error
		text     string
	}{
		{"empty id", "", agents.Registration{}, agents.ErrInvalid, "agent_id cannot be empty"},
		{"own parent", "one", agents.Registration{Parent: "one"}, agents.ErrInvalid, "parent_id"},
		{"negative depth", "one", agents.Registration{Depth: -1}, agents.ErrInvalid, "depth"},
		{"too many tools", "one", agents.Registration{Tools: make([]agents.ProvidedTool, 3)}, share.ErrLimit, "2 tools"},
		{"too large anew", "two", agents.Registration{Kind: strings.Repeat("x", 4096)}, share.ErrLimit, "4096 bytes"},
		{"too large again", "one", agents.Registration{Kind: strings.Repeat("x", 4096)}, share.ErrLimit, "4096 bytes"},
	} {
		_, err := d.Register(tenant, tt.id, tt.r)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v with %q", tt.name, err, tt.want, tt.text)
		}
	}
	if got := MustGet(t, d, "one"); !cmp.Equal(got.Capabilities, []string{"a"}) {
		t.Errorf("a refused registration changed %+v", got)
	}
	MustRegister(t, d, "two")
	if _, err := d.Register(tenant, "three", agents.Registration{}); !errors.Is(err, share.ErrLimit) {
		t.Errorf("third agent of two: %v", err)
	}
	if _, err := d.Open(tenant, "three", agents.OpenOptions{}); !errors.Is(err, share.ErrLimit) {
		t.Errorf("stream of a third agent of two: %v", err)
	}
	if _, err := d.Register("other", "three", agents.Registration{}); err != nil {
		t.Errorf("another tenant's limit was reached: %v", err)
	}
}

// Memory is given back: registering over and over never reaches the limit.
func TestBytesAreGivenBack(t *testing.T) {
	d := MustDirectory(t, nil, &agents.Options{MaxBytes: 4096})
	for range 100 {
		if _, err := d.Register(tenant, "one", agents.Registration{Kind: strings.Repeat("x", 3000)}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Delete(t.Context(), tenant, "one"); err != nil {
			t.Fatal(err)
		}
		MustOpen(t, d, strings.Repeat("y", 3000)).Close()
	}
}

func TestDepth(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	for _, tt := range []struct {
		id, parent  string
		depth, want int
	}{
		{"root", "", 0, 0},
		{"child", "root", 0, 1},
		{"grandchild", "child", 0, 2},
		{"told", "root", 7, 7},
		{"orphan", "nobody", 0, 0},
		{"child", "root", 0, 1},
	} {
		a, err := d.Register(tenant, tt.id, agents.Registration{Parent: tt.parent, Depth: tt.depth})
		if err != nil || a.Depth != tt.want || a.Parent != tt.parent {
			t.Errorf("%s: depth %d under %q, %v; want %d", tt.id, a.Depth, a.Parent, err, tt.want)
		}
	}
}

// Nothing of one tenant can be seen or reached from another.
func TestTenantsAreApart(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	MustRegister(t, d, "one", "echo")
	link := MustOpen(t, d, "one")
	if err := d.SaveState(t.Context(), tenant, "one", agents.State{Persistent: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	mark(d, link, "t", 1, "e")
	if err := d.EndGap(t.Context(), link, true); err != nil {
		t.Fatal(err)
	}
	const other = "other"
	if _, ok := d.Get(other, "one"); ok {
		t.Error("the agent can be seen")
	}
	if got := d.Tools(other); len(got) > 0 {
		t.Errorf("tools: %+v", got)
	}
	if _, err := d.Call(t.Context(), other, agents.ToolCall{Name: "echo"}); !errors.Is(err, agents.ErrNotFound) {
		t.Errorf("call: %v", err)
	}
	if err := d.Send(t.Context(), other, "one", newEvent("e")); !errors.Is(err, agents.ErrNotConnected) {
		t.Errorf("send: %v", err)
	}
	if _, err := d.LoadState(t.Context(), other, "one"); !errors.Is(err, agents.ErrNotFound) {
		t.Errorf("state: %v", err)
	}
	if found, err := d.Delete(t.Context(), other, "one"); found || err != nil {
		t.Errorf("deleted: %v, %v", found, err)
	}
	if g, found, err := d.TakeGap(t.Context(), other, "one"); found || err != nil {
		t.Errorf("gap: %+v, %v", g, err)
	}
	if _, found, err := d.TakeGap(t.Context(), tenant, "one"); !found || err != nil {
		t.Errorf("own gap: %v, %v", found, err)
	}
}

func TestDelete(t *testing.T) {
	var w watcher
	bubble(t, &agents.Options{OnChange: w.told}, func(t *testing.T, d *agents.Directory) {
		if found, err := d.Delete(t.Context(), tenant, "one"); found || err != nil {
			t.Errorf("unknown: %v, %v", found, err)
		}
		MustRegister(t, d, "one", "echo")
		link := MustOpen(t, d, "one")
		defer link.Close()
		if err := d.SaveState(t.Context(), tenant, "one", agents.State{}); err != nil {
			t.Fatal(err)
		}
		mark(d, link, "t", 1, "e")
		if found, err := d.Delete(t.Context(), tenant, "one"); !found || err != nil {
			t.Errorf("deleted: %v, %v", found, err)
		}
		if _, ok := d.Get(tenant, "one"); ok {
			t.Error("it is still in the directory")
		}
		if _, err := d.LoadState(t.Context(), tenant, "one"); !errors.Is(err, agents.ErrNotFound) {
			t.Errorf("state: %v", err)
		}
		if _, found, err := d.TakeGap(t.Context(), tenant, "one"); found || err != nil {
			t.Errorf("gap: %v, %v", found, err)
		}
		if _, err := d.Call(t.Context(), tenant, agents.ToolCall{Name: "echo"}); !errors.Is(err, agents.ErrNotFound) {
			t.Errorf("call: %v", err)
		}
		link.Heartbeat()
		if diff := cmp.Diff([]string{"default one idle", "default one active", "default one disconnected"}, w.take()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		MustRegister(t, d, "one")
		if a := MustGet(t, d, "one"); a.Streams != 1 || a.Status != agents.Active {
			t.Errorf("registered again over its open stream: %+v", a)
		}
	})
}

func TestClosed(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	MustRegister(t, d, "one", "echo")
	link := MustOpen(t, d, "one")
	answers := ask(t.Context(), d, agents.ToolCall{Name: "echo"})
	<-link.Calls()
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if a := <-answers; !errors.Is(a.err, agents.ErrNotConnected) {
		t.Errorf("pending call: %v", a.err)
	}
	<-link.Done()
	link.Close()
	_, registering := d.Register(tenant, "one", agents.Registration{})
	_, opening := d.Open(tenant, "one", agents.OpenOptions{})
	_, calling := d.Call(t.Context(), tenant, agents.ToolCall{Name: "echo"})
	_, _, taking := d.TakeGap(t.Context(), tenant, "one")
	for what, err := range map[string]error{
		"register": registering, "open": opening, "call": calling, "take": taking, "send": d.Send(t.Context(), tenant, "one", newEvent("e")),
	} {
		if !errors.Is(err, agents.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
