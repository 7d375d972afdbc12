package gather_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// fake is a source that answers what find returns.
type fake struct {
	name string
	find func(ctx context.Context, a *gather.Ask) (gather.Found, error)
}

func (f *fake) Name() string { return f.name }

func (f *fake) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	return f.find(ctx, a)
}

// slow is a fake with a timeout.
type slow struct{ fake }

func (*slow) Timeout(*gather.Ask) time.Duration { return 100 * time.Millisecond }

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// words counts words as tokens.
func words(s string) int { return len(strings.Fields(s)) }

func ask() *gather.Ask {
	return &gather.Ask{Scope: kv.AgentScope("default", "alice"), SessionID: "s", Now: noon, Count: words}
}

func gathered(t *testing.T, g *gather.Gatherer, a *gather.Ask) gather.Gathered {
	t.Helper()
	got, err := g.Gather(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// texts are the injections of an answer, by name.
func texts(g gather.Gathered) map[string]string {
	all := make(map[string]string)
	for _, in := range g.Injections {
		all[in.Name] = in.Text
	}
	return all
}

// memories is a source of one block whose items can be set.
type memories struct {
	items []gather.Item
	stale bool
	cap   int
	cache inject.Cache
	input string
	shown []gather.Item
}

func (m *memories) Name() string { return "user_memory" }

func (m *memories) Collect(_ context.Context, a *gather.Ask) (gather.Found, error) {
	m.shown = a.Shown
	return gather.Found{Block: &gather.Block{
		Frame: inject.Injection{Name: "user_memory", Phase: inject.UserContext, Cache: m.cache, Tag: "user_memory", MaxTokens: m.cap},
		Items: m.items, Stale: m.stale, NewName: "user_memory_new", Input: m.input,
	}}, nil
}

func item(ref, text string) gather.Item { return gather.Item{Ref: ref, Version: "1", Text: text} }

// A block stays as it is until its time is over; what is found beyond it stands apart,
// in phase Runtime.
//
// P40, I03, K48
func TestBlockStays(t *testing.T) {
	for _, class := range []struct {
		cache inject.Cache
		ttl   time.Duration
	}{{inject.Session, 300 * time.Second}, {inject.Stable, 3600 * time.Second}} {
		m := &memories{items: []gather.Item{item("a", "- likes tea"), item("b", "- lives in Rome")}, cache: class.cache}
		g := gather.New([]gather.Source{m}, nil)
		a := ask()
		first := gathered(t, g, a)
		if got := texts(first)["user_memory"]; got != "- likes tea\n- lives in Rome" || len(first.Injections) != 1 {
			t.Fatalf("first: %+v", first.Injections)
		}
		m.items = []gather.Item{item("c", "- has a dog"), item("a", "- likes tea")}
		for _, later := range []time.Duration{0, class.ttl - 1} {
			a.Now = noon.Add(later)
			got := texts(gathered(t, g, a))
			if got["user_memory"] != "- likes tea\n- lives in Rome" || got["user_memory_new"] != "- has a dog" {
				t.Errorf("after %v: %q", later, got)
			}
		}
		for _, in := range gathered(t, g, a).Injections {
			if in.Name == "user_memory_new" && (in.Phase != inject.Runtime || in.Cache != inject.Dynamic || in.Tag != "user_memory") {
				t.Errorf("beyond the block: %+v", in)
			}
		}
		if len(m.shown) != 2 || m.shown[0].Ref != "a" {
			t.Errorf("the source is told %v", m.shown)
		}
		a.Now = noon.Add(class.ttl)
		if got := texts(gathered(t, g, a)); got["user_memory"] != "- has a dog\n- likes tea" || got["user_memory_new"] != "" {
			t.Errorf("when its time is over: %q", got)
		}
	}
}

// It ends with its time, and other sessions and agents have blocks of their own.
//
// K48
func TestBlockOfASession(t *testing.T) {
	m := &memories{items: []gather.Item{item("a", "- one")}, cache: inject.Session}
	g := gather.New([]gather.Source{m}, nil)
	a := ask()
	gathered(t, g, a)
	m.items = []gather.Item{item("b", "- two")}
	for name, change := range map[string]func(a *gather.Ask){
		"another session": func(a *gather.Ask) { a.SessionID = "" },
		"another agent":   func(a *gather.Ask) { a.Scope.Owner = "bob" },
		"another tenant":  func(a *gather.Ask) { a.Scope.Tenant = "other" },
		"later":           func(a *gather.Ask) { a.Now = noon.Add(5 * time.Minute) },
	} {
		other := *a
		other.DryRun = true // it keeps nothing
		change(&other)
		if got := texts(gathered(t, g, &other)); got["user_memory"] != "- two" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := texts(gathered(t, g, a)); got["user_memory"] != "- one" {
		t.Errorf("then: %q", got)
	}
	m.input = "another user"
	if got := texts(gathered(t, g, a)); got["user_memory"] != "- two" {
		t.Errorf("with another input: %q", got)
	}
}

// A record that is shown and changes ends the block at once, unless the preset lets it
// stay.
//
// I21, K48
func TestBlockOfAChangedRecord(t *testing.T) {
	m := &memories{items: []gather.Item{item("a", "- one")}, cache: inject.Session}
	g := gather.New([]gather.Source{m}, nil)
	a := ask()
	gathered(t, g, a)
	m.items, m.stale = []gather.Item{{Ref: "a", Version: "2", Text: "- two"}}, true
	a.KeepOnWrite = true
	if got := texts(gathered(t, g, a)); got["user_memory"] != "- one" || len(got) != 1 {
		t.Errorf("kept: %q", got)
	}
	a.KeepOnWrite = false
	if got := texts(gathered(t, g, a)); got["user_memory"] != "- two" || len(got) != 1 {
		t.Errorf("changed: %q", got)
	}
}

// A block and what is found beyond it have one cap. A long block leaves a third of it to
// what comes later.
func TestBlockCap(t *testing.T) {
	for limit, want := range map[int][2]string{
		0:  {"- a1 a2\n- b1 b2\n- c1 c2", ""},
		12: {"- a1 a2\n- b1 b2", "- c1 c2"}, // with a token for each line break
		11: {"- a1 a2\n- b1 b2", "- c1 c2"},
		10: {"- a1 a2", "- b1 b2\n- c1 c2"},
		9:  {"- a1 a2", "- b1 b2"},
		5:  {"- a1 a2", ""},
		3:  {"- a1 a2", ""},
		2:  {"", ""},
	} {
		m := &memories{items: []gather.Item{item("a", "- a1 a2"), item("b", "- b1 b2"), item("c", "- c1 c2")}, cache: inject.Session, cap: limit}
		got := gathered(t, gather.New([]gather.Source{m}, nil), ask())
		all := texts(got)
		if limit == 2 { // a single line that is too long is cut
			if all["user_memory"] != "- …" && words(all["user_memory"]) > 2 {
				t.Errorf("cap %d: %q", limit, all)
			}
			continue
		}
		if all["user_memory"] != want[0] || all["user_memory_new"] != want[1] {
			t.Errorf("cap %d: %q", limit, all)
		}
		if n := words(all["user_memory"]) + words(all["user_memory_new"]); limit > 0 && n > limit {
			t.Errorf("cap %d: %d tokens", limit, n)
		}
		if left := len(got.LeftOut["user_memory"]); left != 3-len(got.Refs["user_memory"])-len(got.Refs["user_memory_new"]) {
			t.Errorf("cap %d: %d left out", limit, left)
		}
	}
}

// A source that fails, panics or takes too long is named, and the others stand there. One
// that the settings exclude is not asked.
//
// G16, G20, I07, Q12
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		find := func(text string, err error, d time.Duration) fake {
			return fake{name: text, find: func(_ context.Context, _ *gather.Ask) (gather.Found, error) {
				if text == "panic" {
					panic("no")
				}
				time.Sleep(d) // it does not watch its context
				return gather.Found{Injections: []inject.Injection{{Name: text, Text: text}}}, err
			}}
		}
		well, bad, panics, excluded := find("well", nil, 0), find("bad", errors.New("secret path"), 0), find("panic", nil, 0), find("tasks", errors.New("asked"), 0)
		in, out := slow{find("in", nil, 99*time.Millisecond)}, slow{find("out", nil, 101*time.Millisecond)}
		g := gather.New([]gather.Source{&well, &bad, &in, &out, &panics, &excluded}, &gather.Options{
			OnFailure: func(f gather.Failure) { told = append(told, f.Source) },
		})
		a := ask()
		a.Settings = settings.Prompt{Sources: settings.Sources{Exclude: []string{"tasks"}}}
		start := time.Now()
		got := gathered(t, g, a)
		if since := time.Since(start); since != 100*time.Millisecond {
			t.Errorf("it took %v", since)
		}
		if all := texts(got); len(all) != 2 || all["well"] == "" || all["in"] == "" {
			t.Errorf("injections %v", all)
		}
		if len(got.Failures) != 3 || got.Failures[0].Source != "bad" || !got.Failures[1].TimedOut || got.Failures[2].Source != "panic" || len(told) != 3 {
			t.Errorf("failures %+v, told %v", got.Failures, told)
		}
		for _, f := range got.Failures {
			if strings.Contains(f.Reason, "secret") {
				t.Errorf("a reason says %q", f.Reason)
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A view that is too old ends the prompt, which is made anew; so does its caller's ctx.
func TestTooOld(t *testing.T) {
	s := &fake{name: "x", find: func(context.Context, *gather.Ask) (gather.Found, error) { return gather.Found{}, kv.ErrTooOld }}
	g := gather.New([]gather.Source{s}, nil)
	if _, err := g.Gather(t.Context(), ask()); !errors.Is(err, kv.ErrTooOld) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Gather(ctx, ask()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A dry run keeps no block, and what was rendered is told to its source.
func TestRendered(t *testing.T) {
	m := &memories{items: []gather.Item{item("a", "- one")}, cache: inject.Session}
	var used []string
	s := &fake{name: "playbook", find: func(ctx context.Context, a *gather.Ask) (gather.Found, error) {
		found, err := m.Collect(ctx, a)
		found.Rendered = func(refs []string) { used = append(used, refs...) }
		return found, err
	}}
	g := gather.New([]gather.Source{s}, nil)
	a := ask()
	a.DryRun = true
	gathered(t, g, a)
	m.items = []gather.Item{item("b", "- two")}
	a.DryRun = false
	got := gathered(t, g, a)
	if all := texts(got); all["user_memory"] != "- two" {
		t.Errorf("a dry run kept %q", all)
	}
	got.Rendered()
	if len(used) != 1 || used[0] != "b" {
		t.Errorf("used %v", used)
	}
}
