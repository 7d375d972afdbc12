package agents_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

const tenant = "default"

// MustDirectory returns a directory on engine that is closed with the test;
// without an engine on an empty one in memory.
func MustDirectory(tb testing.TB, engine kv.Engine, opts *agents.Options) *agents.Directory {
	tb.Helper()
	if engine == nil {
		engine = memkv.New(nil)
		tb.Cleanup(func() { _ = engine.Close() })
	}
	writer := kv.NewWriter(engine, nil)
	d := agents.New(engine, writer, opts)
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
		if err := writer.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// MustRegister registers an agent with tools.
func MustRegister(tb testing.TB, d *agents.Directory, id string, tools ...string) agents.Agent {
	tb.Helper()
	var r agents.Registration
	for _, name := range tools {
		r.Tools = append(r.Tools, agents.ProvidedTool{Name: name, Description: id})
	}
	a, err := d.Register(tenant, id, r)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// MustOpen opens a stream without heartbeats.
func MustOpen(tb testing.TB, d *agents.Directory, id string) *agents.Link {
	tb.Helper()
	link, err := d.Open(tenant, id, agents.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return link
}

// MustGet returns an agent that is in the directory.
func MustGet(tb testing.TB, d *agents.Directory, id string) agents.Agent {
	tb.Helper()
	a, ok := d.Get(tenant, id)
	if !ok {
		tb.Fatalf("agent %q is not in the directory", id)
	}
	return a
}

// echo answers every call of a link with its arguments and a prefix, until the
// link is closed.
func echo(link *agents.Link, prefix string) {
	for call := range link.Calls() {
		link.Complete(call.ID, agents.ToolResult{Output: prefix + call.Arguments})
	}
}

// answer is what became of a call.
type answer struct {
	result agents.ToolResult
	err    error
}

// ask calls a tool and returns where the answer comes.
func ask(ctx context.Context, d *agents.Directory, c agents.ToolCall) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		r, err := d.Call(ctx, tenant, c)
		answers <- answer{r, err}
	}()
	return answers
}

// watcher keeps the changes that it is told of.
type watcher struct {
	mu  sync.Mutex
	got []string
}

func (w *watcher) told(tenant string, c agents.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, tenant+" "+c.AgentID+" "+c.Status.String())
}

// take returns what came since the last time. It needs a synctest bubble.
func (w *watcher) take() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	return got
}

// bubble runs a test with fake time, and closes what it made before it ends.
func bubble(t *testing.T, opts *agents.Options, test func(*testing.T, *agents.Directory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, MustDirectory(t, nil, opts)) })
}

// pass lets fake time pass and everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
