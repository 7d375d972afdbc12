package approval_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// engine is a store whose commits take a while, and fail when they are told to.
type engine struct {
	kv.Engine
	mu    sync.Mutex
	takes time.Duration
	fails error
}

func (e *engine) set(takes time.Duration, fails error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.takes, e.fails = takes, fails
}

func (e *engine) Commit(ctx context.Context, c kv.Commit) error {
	e.mu.Lock()
	takes, fails := e.takes, e.fails
	e.mu.Unlock()
	time.Sleep(takes)
	if fails != nil {
		return fails
	}
	return e.Engine.Commit(ctx, c)
}

// world is a broker that a person watches, in a bubble of its own time.
type world struct {
	*approval.Broker
	engine *engine
	watch  *approval.Watcher
}

var person = approval.Decider{Tenant: "t", Agent: "person", Approves: func(string) bool { return true }, All: true}

func mustWorld(t *testing.T) *world {
	t.Helper()
	e := &engine{Engine: memkv.New(nil)}
	w := kv.NewWriter(e, nil)
	b := approval.New(e, w, nil)
	watch := b.Watch(person)
	t.Cleanup(func() {
		watch.Close()
		if err := errors.Join(w.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return &world{b, e, watch}
}

func request(n int) approval.Request {
	return approval.Request{
		Tenant: "t", Agent: "a", Session: "s", Tool: "shell:run",
		Capability: policy.Capability{Kind: policy.KindHost, Name: fmt.Sprint("host", n, ":443")},
	}
}

// ask asks in the background; what comes of it is sent.
func (w *world) ask(ctx context.Context, r approval.Request, limit time.Duration) <-chan approval.Ruling {
	answered := make(chan approval.Ruling, 1)
	go func() {
		a, err := w.Ask(ctx, r, limit)
		if err != nil {
			a.Ruling = approval.Ruling(err.Error())
		}
		answered <- a.Ruling
	}()
	return answered
}

func (w *world) mustNext(t *testing.T) approval.Request {
	t.Helper()
	came, _, err := w.watch.Next(t.Context())
	for err == nil && len(came) == 0 {
		came, _, err = w.watch.Next(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return came[0]
}

func (w *world) remembered(t *testing.T) int {
	t.Helper()
	grants, err := w.Grants(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	return len(grants)
}

// In whatever order a question, its deadline, a slow store and several people meet: at most one
// decision counts, one that is refused leaves nothing behind, and one that counts is what the
// call is answered with, unless the call had gone while its rule was stored.
func TestDecisionsCountOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	answers := []approval.Ruling{approval.Denied, approval.Once, approval.ForSession, approval.ForAgent, approval.ForAll}
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := mustWorld(t)
			var broken error
			if random.IntN(4) == 0 {
				broken = errors.New("disk full")
			}
			w.engine.set(time.Duration(random.IntN(4))*time.Second, broken)
			answered := w.ask(t.Context(), request(1), time.Duration(1+random.IntN(6))*time.Second)
			id := w.mustNext(t).ID
			type said struct {
				answer approval.Ruling
				err    error
			}
			all := make(chan said, 3)
			for range cap(all) {
				answer, wait := answers[random.IntN(len(answers))], time.Duration(random.IntN(8))*time.Second
				go func() {
					time.Sleep(wait)
					_, err := w.Decide(t.Context(), person, id, approval.Answer{Ruling: answer})
					all <- said{answer, err}
				}()
			}
			var counted []approval.Ruling
			for range cap(all) {
				if s := <-all; s.err == nil {
					counted = append(counted, s.answer)
				}
			}
			got, remembered := <-answered, w.remembered(t)
			lasting := len(counted) == 1 && counted[0] != approval.Denied && counted[0] != approval.Once
			switch {
			case len(counted) > 1:
				t.Errorf("seed %d: %v all counted", seed, counted)
			case (remembered > 0) != lasting:
				t.Errorf("seed %d: %v counted, and %d answers are remembered", seed, counted, remembered)
			case len(counted) == 0 && got != approval.TimedOut:
				t.Errorf("seed %d: no decision counted, and the call was answered %q", seed, got)
			case len(counted) == 1 && got != counted[0] && (!lasting || got != approval.TimedOut):
				t.Errorf("seed %d: %v counted, and the call was answered %q", seed, counted, got)
			}
		})
	}
}

// A decision that can't be stored leaves the call waiting: it may be decided again.
func TestDecisionThatIsNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := mustWorld(t)
		answered := w.ask(t.Context(), request(1), time.Minute)
		id := w.mustNext(t).ID
		full := errors.New("disk full")
		w.engine.set(0, full)
		if _, err := w.Decide(t.Context(), person, id, approval.Answer{Ruling: approval.ForAll}); !errors.Is(err, full) {
			t.Errorf("decided: %v", err)
		}
		w.engine.set(0, nil)
		if _, err := w.Decide(t.Context(), person, id, approval.Answer{Ruling: approval.ForAgent}); err != nil {
			t.Error(err)
		}
		if got := <-answered; got != approval.ForAgent || w.remembered(t) != 1 {
			t.Errorf("answered %q, %d remembered", got, w.remembered(t))
		}
	})
}

// A call that gives up is answered at once, and waits no more.
func TestCallsThatGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := mustWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		answered := w.ask(ctx, request(1), time.Minute)
		id := w.mustNext(t).ID
		cancel()
		if got := <-answered; got.Allows() {
			t.Errorf("answered %q", got)
		}
		if _, err := w.Decide(t.Context(), person, id, approval.Answer{Ruling: approval.ForAll}); !errors.Is(err, approval.ErrNotFound) || w.remembered(t) != 0 {
			t.Errorf("decided about a call that has gone: %v, %d remembered", err, w.remembered(t))
		}
	})
}

// A grant answers those that wait for the same, and for what lies in it, and no others.
func TestGrantsAnswerWhatTheyCover(t *testing.T) {
	t.Parallel()
	place := func(agent, session, kind, name string) approval.Request {
		return approval.Request{Tenant: "t", Agent: agent, Session: session, Tool: "fs:read_file", Capability: policy.Capability{Kind: kind, Name: name}}
	}
	for _, c := range []struct {
		name   string
		scope  approval.Ruling
		other  approval.Request
		covers bool
	}{
		{"the same again", approval.ForSession, place("a", "s", "write", "/data/x"), true},
		{"below it", approval.ForSession, place("a", "s", "write", "/data/x/y"), true},
		{"to read is less", approval.ForSession, place("a", "s", "read", "/data/x"), true},
		{"beside it", approval.ForAll, place("a", "s", "write", "/data/xy"), false},
		{"above it", approval.ForAll, place("a", "s", "read", "/data"), false},
		{"another session", approval.ForSession, place("a", "s2", "write", "/data/x"), false},
		{"another session of the agent", approval.ForAgent, place("a", "s2", "write", "/data/x"), true},
		{"another agent", approval.ForAgent, place("b", "s", "write", "/data/x"), false},
		{"another agent of all", approval.ForAll, place("b", "s", "write", "/data/x"), true},
		{"once is once", approval.Once, place("a", "s", "write", "/data/x"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := mustWorld(t)
				w.ask(t.Context(), place("a", "s", "write", "/data/x"), time.Minute)
				id := w.mustNext(t).ID
				waits := w.ask(t.Context(), c.other, time.Hour)
				w.mustNext(t)
				if _, err := w.Decide(t.Context(), person, id, approval.Answer{Ruling: c.scope}); err != nil {
					t.Fatal(err)
				}
				later := w.ask(t.Context(), c.other, time.Hour)
				for _, one := range []<-chan approval.Ruling{waits, later} {
					if got := <-one; got.Allows() != c.covers {
						t.Errorf("answered %q", got)
					}
				}
			})
		})
	}
}
