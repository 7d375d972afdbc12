package agents_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// toolsNamed returns n tools, each with a name of its own.
func toolsNamed(prefix string, n int) []agents.ProvidedTool {
	tools := make([]agents.ProvidedTool, n)
	for i := range tools {
		tools[i].Name = fmt.Sprintf("%s-%08d-%s", prefix, i, strings.Repeat("x", 32))
	}
	return tools
}

// The tools of a whole tenant are bounded; what an agent replaces makes room.
func TestToolsOfATenant(t *testing.T) {
	d := MustDirectory(t, nil, &agents.Options{MaxTenantTools: 5})
	register := func(id string, tools int) error {
		_, err := d.Register(tenant, id, agents.Registration{Tools: toolsNamed("shared", tools)})
		return err
	}
	mustLimit := func(err error) {
		t.Helper()
		full, ok := errors.AsType[*share.LimitError](err)
		if !ok || full.Limit != 5 || !errors.Is(err, share.ErrLimit) {
			t.Errorf("got %v", err)
		}
	}
	if err := errors.Join(register("one", 3), register("two", 2)); err != nil {
		t.Fatal(err)
	}
	mustLimit(register("three", 1))
	mustLimit(register("two", 3))
	if _, there := d.Get(tenant, "three"); there || len(MustGet(t, d, "two").Tools) != 2 {
		t.Error("a refused registration changed something")
	}
	if err := errors.Join(register("one", 1), register("two", 3), register("three", 1), register("four", 0)); err != nil {
		t.Error(err)
	}
	if _, err := d.Delete(t.Context(), tenant, "one"); err != nil {
		t.Fatal(err)
	}
	if err := register("three", 2); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	if _, err := d.Register("other", "one", agents.Registration{Tools: toolsNamed("own", 5)}); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// Listing takes time with the number of tools, not with its square: nobody else
// gets at the directory meanwhile.
func TestListingManyTools(t *testing.T) {
	const n = agents.DefaultMaxTenantTools
	d := MustDirectory(t, nil, &agents.Options{MaxTools: n, MaxToolBytes: 1 << 30, MaxTenantToolBytes: 1 << 30})
	if _, err := d.Register(tenant, "one", agents.Registration{Tools: toolsNamed("tool", n)}); err != nil {
		t.Fatal(err)
	}
	MustOpen(t, d, "one")
	best := time.Hour
	for range 3 {
		started := time.Now()
		if got := d.Tools(tenant); len(got) != n || !strings.HasPrefix(got[n-1].Name, "tool-00065535") {
			t.Fatalf("%d tools", len(got))
		}
		best = min(best, time.Since(started))
	}
	if best > 20*time.Second { // idle .4 s, and many times that on a busy machine with the race detector
		t.Errorf("it took %v", best)
	}
}

// slowly returns Options under which nobody is told of changes before the
// function is called.
func slowly(w *watcher, logger *slog.Logger) (opts *agents.Options, release func()) {
	held := make(chan struct{})
	told := func(tenant string, c agents.Change) {
		<-held
		w.told(tenant, c)
	}
	return &agents.Options{OnChange: told, Logger: logger}, func() { close(held) }
}

// What waits to be told keeps no registration alive.
func TestWaitingChangesAreSmall(t *testing.T) {
	var w watcher
	opts, release := slowly(&w, nil)
	d := MustDirectory(t, nil, opts)
	defer release()
	const large, pairs = 3 << 20, 60
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	for i := range pairs {
		id := fmt.Sprint("agent-", i)
		r := agents.Registration{
			Tools:        []agents.ProvidedTool{{Name: "tool", Schema: strings.Repeat("s", large/3)}},
			Capabilities: []string{"short", strings.Repeat("c", large/3)},
			Metadata:     map[string]string{"m": strings.Repeat("m", large/3)},
		}
		if _, err := d.Register(tenant, id, r); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Delete(t.Context(), tenant, id); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d MiB are held for %d deleted registrations", grown>>20, pairs)
	}
}

// A change has as many capabilities as it may.
func TestCapabilitiesOfAChange(t *testing.T) {
	var got []agents.Change
	told := func(_ string, c agents.Change) { got = append(got, c) }
	bubble(t, &agents.Options{OnChange: told}, func(t *testing.T, d *agents.Directory) {
		for id, r := range map[string]agents.Registration{
			"many":  {Tools: toolsNamed("tool", agents.MaxChangeCapabilities+1)},
			"large": {Capabilities: []string{"a", strings.Repeat("x", agents.MaxChangeCapabilityBytes), "b"}},
			"few":   {Tools: []agents.ProvidedTool{{Name: "a"}}, Capabilities: []string{"b"}, Parent: "many", Depth: 3},
		} {
			if _, err := d.Register(tenant, id, r); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, c := range got {
			want := map[string]int{"many": agents.MaxChangeCapabilities, "large": 1, "few": 2}[c.AgentID]
			if len(c.Capabilities) != want || c.Status != agents.Idle || c.LastSeen != time.Now() {
				t.Errorf("%s: %d capabilities, %+v", c.AgentID, len(c.Capabilities), c)
			}
			if c.AgentID == "few" && (c.Parent != "many" || c.Depth != 3) {
				t.Errorf("%+v", c)
			}
		}
		if len(got) != 3 {
			t.Errorf("told %d times", len(got))
		}
	})
}

// Where too many changes wait, the last of each agent still comes, in order.
func TestChangesAreCollapsed(t *testing.T) {
	var w watcher
	var log strings.Builder
	opts, release := slowly(&w, slog.New(slog.NewTextHandler(&log, nil)))
	bubble(t, opts, func(t *testing.T, d *agents.Directory) {
		MustOpen(t, d, "first").Close()
		for i := range 40_000 {
			MustOpen(t, d, fmt.Sprint("flapping-", i%3)).Close()
		}
		MustOpen(t, d, "last")
		release()
		got := w.take()
		if len(got) > 1<<16 || len(got) < 1000 || got[len(got)-1] != "default last active" {
			t.Fatalf("told %d times, last %q", len(got), got[len(got)-1])
		}
		for _, id := range []string{"first", "flapping-0", "flapping-1", "flapping-2"} {
			of := slices.DeleteFunc(slices.Clone(got), func(text string) bool { return !strings.Contains(text, " "+id+" ") })
			if of[len(of)-1] != "default "+id+" disconnected" {
				t.Errorf("%s: last told %q", id, of[len(of)-1])
			}
			for i := 1; i < len(of)-1; i++ {
				if strings.HasSuffix(of[i], " active") && of[i] == of[i+1] {
					t.Fatalf("%s: active twice in a row", id)
				}
			}
		}
		if log.Len() > 0 {
			t.Errorf("logged %s", log.String())
		}
	})
}

// Where the waiting changes are too large, the oldest are lost, and it is said.
func TestChangesAreLost(t *testing.T) {
	var w watcher
	var log strings.Builder
	opts, release := slowly(&w, slog.New(slog.NewTextHandler(&log, nil)))
	bubble(t, opts, func(t *testing.T, d *agents.Directory) {
		id := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 1<<20)) }
		for i := range 40 {
			MustOpen(t, d, id(i))
		}
		release()
		got := w.take()
		if len(got) > 18 || len(got) < 10 || got[len(got)-1] != "default "+id(39)+" active" {
			t.Errorf("told %d times", len(got))
		}
		if !strings.Contains(log.String(), "were dropped") {
			t.Errorf("logged %q", log.String())
		}
	})
}

// No caller waits for longer than the limit; the agent is told what it wrote.
func TestLongestCall(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "one", "do")
		link := MustOpen(t, d, "one")
		answers := ask(t.Context(), d, agents.ToolCall{Name: "do", Timeout: 1<<63 - 1, TimeoutMillis: 1<<63 - 1})
		call := <-link.Calls()
		if time.Until(call.Deadline) != agents.MaxCallTimeout || call.TimeoutMillis != 1<<63-1 || call.Timeout != 1<<63-1 {
			t.Errorf("deadline in %v, %+v", time.Until(call.Deadline), call)
		}
		pass(agents.MaxCallTimeout)
		if a := <-answers; !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("got %+v", a)
		}
	})
}

// What the calls of one stream hold is bounded, sent or not, and freed with each.
func TestBytesOfCalls(t *testing.T) {
	bubble(t, &agents.Options{PendingBytes: 1000}, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "one", "do")
		link := MustOpen(t, d, "one")
		send := func(size int) <-chan answer {
			answers := ask(t.Context(), d, agents.ToolCall{Name: "do", Arguments: strings.Repeat("x", size), Timeout: time.Hour})
			synctest.Wait()
			return answers
		}
		finish := func(answers <-chan answer) {
			t.Helper()
			call := <-link.Calls()
			link.Complete(call.ID, agents.ToolResult{})
			if a := <-answers; a.err != nil {
				t.Errorf("got %v", a.err)
			}
		}
		finish(send(5000)) // the only one
		first, second := send(500), send(400)
		if a := <-send(200); !errors.Is(a.err, agents.ErrBusy) {
			t.Errorf("got %+v", a)
		}
		finish(first)
		third := send(200)
		finish(second)
		finish(third)
		ctx, cancel := context.WithCancel(t.Context())
		gone := ask(ctx, d, agents.ToolCall{Name: "do", Arguments: strings.Repeat("x", 900), Timeout: time.Hour})
		synctest.Wait()
		cancel()
		<-gone
		<-link.Calls()
		finish(send(900)) // one that its caller gave up is forgotten
	})
}

// A caller learns whether the agent may have got the call before its stream ended.
func TestSentOrNot(t *testing.T) {
	for _, taken := range []int{0, 1, 8, 20} {
		bubble(t, nil, func(t *testing.T, d *agents.Directory) {
			MustRegister(t, d, "one", "do")
			link := MustOpen(t, d, "one")
			calls := map[string]<-chan answer{}
			for i := range 30 {
				arguments := fmt.Sprint(i)
				calls[arguments] = ask(t.Context(), d, agents.ToolCall{Name: "do", Arguments: arguments, Timeout: time.Hour})
			}
			synctest.Wait()
			got := map[string]bool{}
			for range taken {
				got[(<-link.Calls()).Arguments] = true
			}
			synctest.Wait()
			link.Close()
			for arguments, answers := range calls {
				gone, ok := errors.AsType[*agents.NotConnectedError]((<-answers).err)
				if !ok || gone.Sent != got[arguments] || gone.Agent != "one" {
					t.Errorf("%d taken, call %s: %+v", taken, arguments, gone)
				}
			}
			_, err := d.Call(t.Context(), tenant, agents.ToolCall{Name: "do"})
			if gone, ok := errors.AsType[*agents.NotConnectedError](err); !ok || gone.Sent {
				t.Errorf("without a stream: %v", err)
			}
		})
	}
}

// heldEngine holds commits up while it is told to.
type heldEngine struct {
	kv.Engine
	hold  chan chan struct{} // takes what the next commit waits for
	began chan struct{}
}

func newHeldEngine() *heldEngine {
	return &heldEngine{Engine: memkv.New(nil), hold: make(chan chan struct{}, 1), began: make(chan struct{}, 1)}
}

func (e *heldEngine) Commit(ctx context.Context, c kv.Commit) error {
	select {
	case release := <-e.hold:
		e.began <- struct{}{}
		<-release
	default:
	}
	return e.Engine.Commit(ctx, c)
}

// A gap whose taker goes away while it is taken is not lost: the taker has it,
// and leaves it for the next one. It makes no difference whether it is in memory
// or only in the store.
func TestTakerGoesAway(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		engine := newHeldEngine()
		d := MustDirectory(t, engine, nil)
		link := MustOpen(t, d, "one")
		mark(d, link, "a", 7, "x")
		if restarted {
			end(t, d, link, true)
			d = MustDirectory(t, engine, nil)
		}
		release := make(chan struct{})
		engine.hold <- release
		ctx, cancel := context.WithCancel(t.Context())
		taken := make(chan agents.Gap, 1)
		go func() {
			g, found, err := d.TakeGap(ctx, tenant, "one")
			if !found || err != nil {
				t.Errorf("restarted %v: %v, %v", restarted, found, err)
			}
			taken <- g
		}()
		<-engine.began
		cancel()
		close(release)
		g := <-taken
		if g.Delivered["a"] != 7 {
			t.Errorf("restarted %v: taken %+v", restarted, g)
		}
		next := MustOpen(t, d, "one")
		d.MarkGap(next, g)
		end(t, d, next, true)
		if g := MustTake(t, d, "one"); g.Delivered["a"] != 7 {
			t.Errorf("restarted %v: taken again %+v", restarted, g)
		}
		noGap(t, d, "one")
	}
}

// One agent that calls a tool of another over and over leaves some calls to others.
func TestPendingCallsAreShared(t *testing.T) {
	bubble(t, &agents.Options{PendingCalls: 64}, func(t *testing.T, d *agents.Directory) {
		MustRegister(t, d, "one", "hang")
		link := MustOpen(t, d, "one")
		ctx, cancel := context.WithCancel(t.Context())
		var answers []<-chan answer
		for range 100 {
			answers = append(answers, ask(ctx, d, agents.ToolCall{Name: "hang", CallerID: "greedy"}))
		}
		synctest.Wait()
		modest := ask(ctx, d, agents.ToolCall{Name: "hang", CallerID: "modest"})
		synctest.Wait()
		cancel()
		busy := 0
		for _, a := range answers {
			if errors.Is((<-a).err, agents.ErrBusy) {
				busy++
			}
		}
		if busy < 37 || busy > 50 {
			t.Errorf("%d of 100 calls were refused", busy)
		}
		if err := (<-modest).err; !errors.Is(err, context.Canceled) {
			t.Errorf("another agent's call: %v", err)
		}
		link.Close()
	})
}
