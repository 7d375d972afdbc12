package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// program is a runner whose programs print their name and take as long as they say; one of
// no length can't be started.
type program struct{ sandbox.Runner }

var errNoProgram = errors.New("there is no such program")

func (program) Run(ctx context.Context, j sandbox.Job, s sandbox.Streams) (sandbox.RunOutcome, error) {
	takes, err := time.ParseDuration(j.Argv[1])
	if err != nil {
		return sandbox.RunOutcome{}, errNoProgram
	}
	fmt.Fprint(s.Stdout, "begun ", j.Argv[0])
	select {
	case <-time.After(takes):
		return sandbox.RunOutcome{}, nil
	case <-ctx.Done():
		return sandbox.RunOutcome{}, ctx.Err()
	}
}

// rig is the jobs of a bubble, and what was started.
type rig struct {
	*jobs.Jobs
	tb      testing.TB
	started []begun
}

type begun struct {
	id    string
	owner jobs.JobOwner
	ends  time.Time
}

func inBubble(t *testing.T, opts jobs.Options, test func(t *testing.T, r *rig)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		opts.TempDir = dir
		r := &rig{Jobs: jobs.New(program{}, &opts), tb: t}
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, r)
	})
}

func owner(tenant, agent, session string) jobs.JobOwner {
	return jobs.JobOwner{Scope: kv.AgentScope(tenant, agent), Session: session}
}

func (r *rig) start(o jobs.JobOwner, takes string) (jobs.Info, error) {
	begin := time.Now()
	i, err := r.Start(jobs.Start{Owner: o, Run: sandbox.Job{Argv: []string{o.Session, takes}}, Done: func() {}})
	if err == nil {
		d, _ := time.ParseDuration(takes)
		r.started = append(r.started, begun{i.ID, o, begin.Add(d)})
	}
	return i, err
}

func (r *rig) mustStart(o jobs.JobOwner, takes string) jobs.Info {
	r.tb.Helper()
	i, err := r.start(o, takes)
	if err != nil {
		r.tb.Fatal(err)
	}
	return i
}

func (r *rig) has(b begun) bool {
	_, err := r.Read(r.tb.Context(), b.owner, b.id, 0, 0, 0)
	if err != nil && !errors.Is(err, jobs.ErrNotFound) {
		r.tb.Fatal(err)
	}
	return err == nil
}

const maxEndedOfAll = 64

// What a job has printed is forgotten only where there is too much, and then that of whoever
// has most of it, the oldest first. A running job never is.
func TestWhoLosesOutput(t *testing.T) {
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	inBubble(t, jobs.Options{MaxRunning: 1000}, func(t *testing.T, r *rig) {
		for range 400 {
			tenant := min(rng.IntN(4), rng.IntN(4)) // some have more than others
			o := owner(fmt.Sprint("t", tenant), fmt.Sprint("a", rng.IntN(3)*rng.IntN(2)), fmt.Sprint("s", rng.IntN(12)))
			if rng.IntN(10) == 0 {
				if _, err := r.start(o, "none"); !errors.Is(err, errNoProgram) {
					t.Fatalf("seed %d: %v", seed, err)
				}
			} else {
				r.mustStart(o, fmt.Sprint(rng.IntN(3)*rng.IntN(2_000_000), "us"))
			}
			synctest.Wait()
			r.checkGone(seed)
		}
	})
}

// checkGone looks at what was forgotten since the last look.
func (r *rig) checkGone(seed uint64) {
	r.tb.Helper()
	var kept, gone []begun
	for _, b := range r.started {
		if r.has(b) {
			kept = append(kept, b)
		} else {
			gone = append(gone, b)
		}
	}
	r.started = kept
	now := time.Now()
	ended := func(like func(begun) bool) (n int) {
		for _, b := range kept {
			if !b.ends.After(now) && like(b) {
				n++
			}
		}
		return n
	}
	for _, g := range gone {
		if g.ends.After(now) {
			r.tb.Fatalf("seed %d: a job that runs was forgotten", seed)
		}
		mine := func(b begun) bool { return b.owner == g.owner }
		if ended(mine) >= jobs.MaxEnded {
			continue // there were more of its session
		}
		tenant := ended(func(b begun) bool { return b.owner.Scope.Tenant == g.owner.Scope.Tenant })
		agent := ended(func(b begun) bool { return b.owner.Scope == g.owner.Scope })
		for _, b := range kept {
			// The loser had one more than now.
			if n := ended(func(o begun) bool { return o.owner.Scope.Tenant == b.owner.Scope.Tenant }); n > tenant+len(gone) {
				r.tb.Fatalf("seed %d: tenant %s lost a job and has %d, %s has %d", seed, g.owner.Scope.Tenant, tenant, b.owner.Scope.Tenant, n)
			}
			same := b.owner.Scope.Tenant == g.owner.Scope.Tenant
			if n := ended(func(o begun) bool { return o.owner.Scope == b.owner.Scope }); same && n > agent+len(gone) {
				r.tb.Fatalf("seed %d: agent %s lost a job and has %d, %s has %d", seed, g.owner.Scope, agent, b.owner.Scope, n)
			}
			if b.owner.Scope == g.owner.Scope && b.ends.Before(g.ends) && len(gone) == 1 {
				r.tb.Fatalf("seed %d: %s lost a job that ended at %s, and kept one of %s", seed, g.owner.Scope, g.ends, b.ends)
			}
		}
	}
}

// The newest output of one tenant stays whatever others run.
func TestOthersTakeNoOutput(t *testing.T) {
	inBubble(t, jobs.Options{}, func(t *testing.T, r *rig) {
		for i := range maxEndedOfAll {
			r.mustStart(owner("noisy", "a", fmt.Sprint("s", i/jobs.MaxEnded)), "0s")
		}
		o := owner("quiet", "a", "s")
		r.mustStart(o, "0s")
		mine := r.started[len(r.started)-1]
		for i := range 3 * maxEndedOfAll {
			r.mustStart(owner("noisy", "a", fmt.Sprint("n", i%20)), "0s")
		}
		if !r.has(mine) {
			t.Error("the only output of a tenant was forgotten for those of another")
		}
		if got, err := r.Read(t.Context(), o, mine.id, 0, 0, 0); err != nil || string(got.Data) != "begun s" {
			t.Errorf("%q, %v", got.Data, err)
		}
	})
}

// A start that is refused forgets nothing, and leaves no job.
func TestRefusedStarts(t *testing.T) {
	inBubble(t, jobs.Options{MaxRunning: 1}, func(t *testing.T, r *rig) {
		o := owner("t", "a", "s")
		for range jobs.MaxEnded {
			r.mustStart(o, "0s")
		}
		before := r.List(o)
		refused := func(takes string, want error) {
			t.Helper()
			done := false
			_, err := r.Start(jobs.Start{Owner: o, Run: sandbox.Job{Argv: []string{"x", takes}}, Done: func() { done = true }})
			if err == nil || want != nil && !errors.Is(err, want) || !done {
				t.Errorf("got %v, done %t", err, done)
			}
			if after := r.List(o); !slices.EqualFunc(before, after, func(x, y jobs.Info) bool { return x.ID == y.ID }) {
				t.Errorf("%d jobs before, now %d", len(before), len(after))
			}
		}
		refused("none", errNoProgram)
		long := r.mustStart(o, "1h")
		before = r.List(o)
		refused("0s", nil) // no place
		if i, err := r.Stop(t.Context(), o, long.ID); err != nil || i.Status != jobs.Stopped {
			t.Errorf("%+v, %v", i, err)
		}
		if n := r.Running(); n != 0 {
			t.Errorf("%d run", n)
		}
		r.mustStart(o, "1h") // its place is free
	})
}

// The jobs of a session end with it, and are seen by no other session.
func TestSessions(t *testing.T) {
	closed := map[string]bool{}
	opts := jobs.Options{Closed: func(_ context.Context, _ kv.Scope, session string) (bool, error) { return closed[session], nil }}
	inBubble(t, opts, func(t *testing.T, r *rig) {
		for _, session := range []string{"one", "two", "three"} {
			r.mustStart(owner("t", "a", session), "1h")
		}
		if _, err := r.Read(t.Context(), owner("t", "a", "two"), r.started[0].id, 0, 0, 0); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("another session reads it: %v", err)
		}
		r.EndSession(kv.AgentScope("t", "a"), "one")
		closed["two"] = true
		r.Sweep(t.Context())
		synctest.Wait()
		if n := r.Running(); n != 1 {
			t.Errorf("%d run", n)
		}
		r.EndAgent(kv.AgentScope("t", "a"))
		synctest.Wait()
		if n := r.Running(); n != 0 {
			t.Errorf("%d run", n)
		}
	})
}

// A reading waits for more, and for the end.
func TestReadWaits(t *testing.T) {
	inBubble(t, jobs.Options{}, func(t *testing.T, r *rig) {
		o, begin := owner("t", "a", "s"), time.Now()
		i := r.mustStart(o, "10s")
		if got, err := r.Read(t.Context(), o, i.ID, -1, 0, time.Minute); err != nil || string(got.Data) != "begun s" || got.Status != jobs.Running {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := r.Read(t.Context(), o, i.ID, -1, 0, 2*time.Second); err != nil || len(got.Data) > 0 || got.Status != jobs.Running {
			t.Errorf("%+v, %v", got, err)
		}
		got, err := r.Read(t.Context(), o, i.ID, -1, 0, time.Minute)
		if err != nil || got.Status != jobs.Exited || time.Since(begin) != 10*time.Second {
			t.Errorf("%+v, %v after %s", got, err, time.Since(begin))
		}
	})
}
