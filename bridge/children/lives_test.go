package children

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// livesAtOnce are the children of one world.
	livesAtOnce = 200
	// soakLives are those of a round of the soak test.
	soakLives = 10_000
)

// Each child gets exactly one result, in every order of deadline, loss, result, cancel,
// restart and takeover, however the store and the bus fail.
//
// C03, P18
func TestLives(t *testing.T) {
	const lives = 400
	t.Log(runWorlds(t, lives))
}

// TestLivesSoak is TestLives for 10,000 children a round.
func TestLivesSoak(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("LOOM_SOAK_ROUNDS"))
	if err != nil {
		t.Skip("LOOM_SOAK_ROUNDS is not set")
	}
	t.Log(runWorlds(t, rounds*soakLives))
}

// figures say what came of the children of some worlds.
type figures struct {
	asked, refused, results int
	outcomes                map[string]int
	servers, killed         int
}

func (f figures) String() string {
	return fmt.Sprintf("%d lives: %d never began, %d results (%v); %d servers, %d of them killed", f.asked, f.refused, f.results, f.outcomes, f.servers, f.killed)
}

// runWorlds runs worlds until so many children have lived.
func runWorlds(t *testing.T, lives int) figures {
	t.Helper()
	seed := chance.Seed(t)
	sum := figures{outcomes: map[string]int{}}
	for i := 0; sum.results < lives; i++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(seed + uint64(i)) //nolint:gosec // any number
			w.live(t, &sum)
		})
		if t.Failed() {
			t.Fatalf("LOOM_SEED=%d", seed+uint64(i)) //nolint:gosec // any number
		}
	}
	return sum
}

// live lets the children of a world live and looks at what came of them.
func (w *world) live(t *testing.T, sum *figures) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w.faults = true
	w.start(ctx, Options{})
	var chaos, lives, waits sync.WaitGroup
	killed := 0
	chaos.Go(func() { killed = w.rage(ctx) })
	for i := range livesAtOnce {
		lives.Go(func() {
			time.Sleep(w.pause(time.Minute))
			w.one(ctx, w.ask(i), &waits)
		})
	}
	lives.Wait()
	end()
	chaos.Wait()
	w.mu.Lock()
	w.faults, w.outage = false, false
	w.mu.Unlock()
	ctx = t.Context()
	if w.any() == nil {
		w.start(ctx, Options{})
	}
	// What has no time and was not lost has to be stopped.
	time.Sleep(2 * time.Minute)
	for i := range livesAtOnce {
		scope := kv.AgentScope(tenant, fmt.Sprint("c", i))
		c, err := NewStore(w.db, nil).Get(ctx, scope)
		if err == nil && c.Result == nil && c.Deadline.IsZero() {
			_, err = w.any().Complete(ctx, scope, Result{Error: "stopped"})
		}
		if err != nil && !errors.Is(err, ErrNotChild) {
			t.Error(err)
		}
	}
	time.Sleep(2 * compareEvery) // what one server did not hear of another it sees in the store
	waits.Wait()
	w.check(t, sum)
	sum.servers, sum.killed = sum.servers+w.made, sum.killed+killed
	for _, s := range w.living() {
		_ = s.Close()
	}
}

// ask is a random spawn.
func (w *world) ask(i int) Spawn {
	r := Spawn{Tenant: tenant, Parent: fmt.Sprint("p", i%7), ParentSession: "s", Child: fmt.Sprint("c", i), Goal: "g"}
	if i > 0 && w.n(10) == 0 {
		r.Parent = fmt.Sprint("c", w.n(i)) // which may have ended
	}
	if w.n(5) > 0 {
		r.RequestID = "r" + r.Child
	}
	if w.n(4) == 0 {
		r.Grants = []string{fmt.Sprintf("%064d", i)}
	}
	timeout := time.Duration(w.n(5)*w.n(8)) * time.Second // 0: none
	r.Limits.Timeout = &timeout
	return r
}

// one is the life of a child, as its parent and itself make it.
func (w *world) one(ctx context.Context, r Spawn, waits *sync.WaitGroup) {
	scope, parent := kv.AgentScope(r.Tenant, r.Child), kv.AgentScope(r.Tenant, r.Parent)
	spawned := time.Now()
	for tries := 0; ; tries++ {
		err := errDead
		if s := w.any(); s != nil {
			_, err = s.Spawn(ctx, r)
		}
		if err == nil || errors.Is(err, ErrExists) || errors.Is(err, ErrEnded) {
			break
		}
		if w.n(20) == 0 && tries > 0 {
			break // its parent has no patience, and the child may be there or not
		}
		time.Sleep(w.pause(time.Second))
	}
	waits.Go(func() { w.wait(parent, r.Child) })
	for range w.n(7) {
		time.Sleep(w.when(spawned, *r.Limits.Timeout))
		s := w.any()
		if s == nil {
			continue
		}
		switch w.n(8) {
		case 0:
			_, _ = s.Complete(ctx, scope, Result{Success: true, Text: "result of " + r.Child, Grants: r.Grants})
		case 1:
			_, _ = s.Complete(ctx, scope, Result{Error: "stopped"})
		case 2:
			if stopped, err := s.Ends(ctx, parent, r.Child, true); err == nil {
				_, _ = s.Complete(ctx, stopped, Result{Error: "stopped"})
			}
		case 3, 4, 5:
			w.attach(r.Child, s)
		default:
			w.attach(r.Child, nil)
		}
	}
	w.attach(r.Child, nil)
}

// when is how long to wait for a moment: any, or one near which results come by themselves.
func (w *world) when(spawned time.Time, timeout time.Duration) time.Duration {
	switch w.n(3) {
	case 0:
		return w.pause(8 * time.Second)
	case 1: // around the deadline
		return time.Until(spawned.Add(timeout - 20*time.Millisecond + w.pause(60*time.Millisecond)))
	}
	return time.Until(spawned.Add(timeout - grace - 20*time.Millisecond + w.pause(60*time.Millisecond)))
}

// wait waits as a parent for a child, at one server after another.
func (w *world) wait(parent kv.Scope, child string) {
	for {
		if s := w.any(); s != nil {
			out, err := s.Wait(context.Background(), parent, "", []string{child}, 10*time.Minute)
			if errors.Is(err, ErrNotChild) && !w.fault(1) || err == nil && out.Complete {
				return
			}
		}
		time.Sleep(w.pause(time.Second))
	}
}

// rage starts and kills servers, and lets the store fail for a while, until ctx ends.
func (w *world) rage(ctx context.Context) (killed int) {
	var ending sync.WaitGroup
	defer ending.Wait()
	for ctx.Err() == nil {
		time.Sleep(w.pause(6 * time.Second))
		switch all := w.living(); {
		case w.n(6) == 0:
			w.mu.Lock()
			w.outage = true
			w.mu.Unlock()
			time.Sleep(w.pause(3 * time.Second))
			w.mu.Lock()
			w.outage = false
			w.mu.Unlock()
		case len(all) > 0 && w.n(2) == 0:
			killed++
			ending.Go(func() { w.kill(all[w.n(len(all))], w.pause(5*time.Second)) })
			time.Sleep(time.Second)
		case len(all) < 3:
			w.start(context.WithoutCancel(ctx), Options{})
		}
	}
	return killed
}

// check looks at what came of all children.
func (w *world) check(t *testing.T, sum *figures) {
	t.Helper()
	store := NewStore(w.db, nil)
	for i := range livesAtOnce {
		id := fmt.Sprint("c", i)
		sum.asked++
		c, err := store.Get(t.Context(), kv.AgentScope(tenant, id))
		if errors.Is(err, ErrNotChild) {
			sum.refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Result == nil {
			t.Errorf("%s has no result; its deadline was %s, it is %s", id, c.Deadline, time.Now())
			continue
		}
		sum.results++
		sum.outcomes[c.Result.outcome()]++
		spawned, results := w.steps(t, c.parentScope(), ToolSpawn, id), w.steps(t, c.parentScope(), ToolResult, id)
		if len(spawned) != 1 || len(results) != 1 || !strings.HasSuffix(results[0], c.Result.Text+c.Result.Error) {
			t.Errorf("%s has the steps %q and %q, and the result %v", id, spawned, results, c.Result)
		}
		if told := w.results[id]; len(told) != 1 {
			t.Errorf("of %s its parent was told %v", id, told)
		}
		if !c.Deadline.IsZero() && c.Result.Error != TimedOut && c.Result.Time.After(c.Deadline) {
			t.Errorf("%s has a result of %s, and its deadline was %s", id, c.Result.Time, c.Deadline)
		}
		must := func(err error) { t.Error(err) }
		if err := Check(t.Context(), w.db, c.Scope(), must); err != nil {
			t.Error(err)
		}
	}
	if left := w.leftovers(t); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}
