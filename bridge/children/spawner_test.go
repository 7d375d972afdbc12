package children

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// script decides about the calls of a server's store and bus, one after another.
type script struct {
	store func(commit bool) (bool, error)
	bus   func() error
}

// scripted runs a test with one server in a bubble, once that has done all that its start
// begins: its watch would take a call that the script means for the test.
func scripted(t *testing.T, opts Options, test func(t *testing.T, s *server, at *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, at := newWorld(1), &script{}
		w.script = at
		s := w.start(t.Context(), opts)
		defer func() { _ = s.Close() }()
		synctest.Wait()
		test(t, s, at)
	})
}

func mustSpawn(t *testing.T, s *server, r Spawn) Child {
	t.Helper()
	r.Tenant, r.Parent, r.Goal = tenant, "p", "g"
	c, err := s.Spawn(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c
}

// mustEnd waits as the parent for the result of a child.
func mustEnd(t *testing.T, s *server, child string, within time.Duration) *Result {
	t.Helper()
	out, err := s.Wait(t.Context(), kv.AgentScope(tenant, "p"), "", []string{child}, within)
	if err != nil || !out.Complete {
		t.Fatalf("after %s: %+v, %v; live %d", within, out, err, s.Stats().Live)
	}
	return out.Children[0].Result
}

// A child whose grace ends just before its deadline gets a result, though the store takes so
// long that the deadline passes meanwhile.
func TestLostJustBeforeItsDeadline(t *testing.T) {
	for _, early := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		scripted(t, Options{}, func(t *testing.T, s *server, at *script) {
			c := mustSpawn(t, s, Spawn{Child: "c"})
			at.store = func(bool) (bool, error) {
				time.Sleep(60 * time.Millisecond)
				return false, nil
			}
			s.Attached(tenant, "c", true)
			time.Sleep(time.Until(c.Deadline) - grace - early)
			s.Attached(tenant, "c", false)
			if r := mustEnd(t, s, "c", time.Minute); r.Error != TimedOut && r.Error != Disconnected {
				t.Errorf("%s before its deadline: %+v", early, r)
			}
		})
	}
}

// unknown lets the next commit have an outcome that nobody can find out. All others of the
// bubble are to be at rest.
func unknown(at *script, written bool) {
	after := 0
	at.store = func(commit bool) (bool, error) {
		switch {
		case commit && after == 0:
			after++
			return written, kv.ErrUnknownOutcome
		case after > 0 && after < 6: // so that kv.Settle gives up
			after++
			return false, kvtest.ErrFault
		}
		return false, nil
	}
}

// A child whose spawn ended with an unknown outcome lives if the store has it, and gets its
// result in time; one that the store has not takes no place.
func TestSpawnOfUnknownOutcome(t *testing.T) {
	for _, written := range []bool{true, false} {
		scripted(t, Options{MaxChildren: 1}, func(t *testing.T, s *server, at *script) {
			unknown(at, written)
			_, err := s.Spawn(t.Context(), Spawn{Tenant: tenant, Parent: "p", Child: "c", Goal: "g"})
			if !errors.Is(err, kv.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			if time.Sleep(90 * time.Second); written {
				if r := mustEnd(t, s, "c", 2*time.Minute); r.Error != TimedOut {
					t.Errorf("%+v", r)
				}
			}
			mustSpawn(t, s, Spawn{Child: "d"})
		})
	}
}

// A result whose commit had an unknown outcome reaches the parent all the same, soon.
func TestResultOfUnknownOutcome(t *testing.T) {
	scripted(t, Options{}, func(t *testing.T, s *server, at *script) {
		c := mustSpawn(t, s, Spawn{Child: "c"})
		unknown(at, true)
		if _, err := s.Complete(t.Context(), c.Scope(), Result{Success: true, Text: "done"}); !errors.Is(err, kv.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if told := s.w.results["c"]; len(told) != 1 {
			t.Errorf("the parent was told %v", told)
		}
		if live := s.Stats().Live; live != 0 {
			t.Errorf("%d children live", live)
		}
	})
}

// Whoever could not be told is told again, without a restart.
func TestToldAgain(t *testing.T) {
	scripted(t, Options{}, func(t *testing.T, s *server, at *script) {
		failing, told := 6, 0
		at.bus = func() error {
			if failing--; failing >= 0 {
				return errFault
			}
			told++
			return nil
		}
		c := mustSpawn(t, s, Spawn{Child: "c"})
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		if told != 1 {
			t.Errorf("the child was told %d times of its spawn", told)
		}
		failing = 3
		if _, err := s.Complete(t.Context(), c.Scope(), Result{Success: true, Text: "done"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if told != 2 || len(s.w.results["c"]) != 1 {
			t.Errorf("the parent was told %d times, of %v", told-1, s.w.results["c"])
		}
		if left := s.w.leftovers(t); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	})
}

// The children of a server that ended are taken up though the store does not answer at that
// moment.
func TestTakeoverOfAStoreThatFails(t *testing.T) {
	scripted(t, Options{}, func(t *testing.T, s *server, at *script) {
		other := s.w.start(t.Context(), Options{})
		mustSpawn(t, other, Spawn{Child: "c"})
		begun := time.Now()
		at.store = func(bool) (bool, error) {
			if time.Since(begun) < 20*time.Second {
				return false, kvtest.ErrFault
			}
			return false, nil
		}
		s.w.kill(other, time.Second)
		time.Sleep(2 * time.Minute)
		if r := mustEnd(t, s, "c", 2*time.Minute); r.Error != TimedOut {
			t.Errorf("%+v", r)
		}
	})
}

// An agent that attached while it was made into a child is watched like one that came later.
func TestAttachedWhileItIsMade(t *testing.T) {
	scripted(t, Options{}, func(t *testing.T, s *server, at *script) {
		at.store = func(commit bool) (bool, error) {
			if at.store = nil; !commit {
				s.w.attach("c", s)
			}
			return false, nil
		}
		mustSpawn(t, s, Spawn{Child: "c", Limits: Asked{Timeout: new(time.Duration)}})
		time.Sleep(time.Hour)
		s.w.attach("c", nil)
		if r := mustEnd(t, s, "c", time.Minute); r.Error != Disconnected {
			t.Errorf("%+v", r)
		}
	})
}

// A spawn or a result that is refused keeps no blob, whatever it is refused for.
func TestRefusalsKeepNoBlobs(t *testing.T) {
	grants := []string{fmt.Sprintf("%064d", 1)}
	spawn := func(child string) func(*testing.T, *server) error {
		return func(t *testing.T, s *server) error {
			_, err := s.Spawn(t.Context(), Spawn{Tenant: tenant, Parent: "p", Child: child, Goal: "g", Grants: grants})
			return err
		}
	}
	for name, refused := range map[string]struct {
		opts Options
		ask  func(*testing.T, *server) error
		err  error
	}{
		"the id is in use":        {Options{}, spawn("c"), ErrExists},
		"too many of the parent":  {Options{MaxChildren: 1}, spawn("d"), ErrTooMany},
		"too many of the tenant":  {Options{MaxTenant: 1}, spawn("d"), ErrTooMany},
		"the step is not written": {Options{}, spawn("unwritten"), errFault},
		"another result": {Options{}, func(t *testing.T, s *server) error {
			if _, err := s.Complete(t.Context(), kv.AgentScope(tenant, "c"), Result{Success: true, Text: "one"}); err != nil {
				t.Fatal(err)
			}
			_, err := s.Complete(t.Context(), kv.AgentScope(tenant, "c"), Result{Success: true, Text: "two", Grants: grants})
			return err
		}, ErrEnded},
		"a result that comes late": {Options{}, func(t *testing.T, s *server) error {
			time.Sleep(time.Minute)
			_, err := s.Complete(t.Context(), kv.AgentScope(tenant, "c"), Result{Success: true, Text: "two", Grants: grants})
			return err
		}, ErrEnded},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, refused.opts, func(t *testing.T, s *server, at *script) {
				mustSpawn(t, s, Spawn{Child: "c"})
				if errors.Is(refused.err, errFault) {
					at.store = func(commit bool) (bool, error) {
						if commit {
							return false, errFault
						}
						return false, nil
					}
				}
				if err := refused.ask(t, s); !errors.Is(err, refused.err) {
					t.Fatalf("got %v", err)
				}
				at.store = nil
				for p, err := range s.w.db.Scan(t.Context(), kv.Blobs, kv.Range{}) {
					t.Errorf("kept: %q, %v", p.Key, err)
				}
			})
		})
	}
}

// A spawn that is granted a blob which has gone meanwhile makes no child.
func TestGrantThatIsGone(t *testing.T) {
	scripted(t, Options{}, func(t *testing.T, s *server, _ *script) {
		s.Keep = func(context.Context, *kv.Tx, kv.Scope, blob.Entry) error { return blob.ErrNotFound }
		_, err := s.Spawn(t.Context(), Spawn{Tenant: tenant, Parent: "p", Child: "c", Goal: "g", Grants: []string{"0123456789ab"}})
		if !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if left := s.w.leftovers(t); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	})
}

// Waits leave nothing behind, however they end.
func TestWaitsLeaveNothing(t *testing.T) {
	scripted(t, Options{}, func(t *testing.T, s *server, _ *script) {
		mustSpawn(t, s, Spawn{Child: "c"})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(7*time.Second, cancel)
		for i := range 300 {
			parent := kv.AgentScope(tenant, fmt.Sprint("x", i))
			if out, err := s.Wait(t.Context(), parent, "", nil, 0); err != nil || !out.Complete {
				t.Fatal(out, err)
			}
			go func() { _, _ = s.Wait(t.Context(), kv.AgentScope(tenant, "p"), "", nil, 6*time.Second) }()
			go func() { _, _ = s.Wait(ctx, kv.AgentScope(tenant, "p"), "", nil, time.Hour) }()
		}
		synctest.Wait()
		if n := len(s.changed); n != 1 {
			t.Errorf("%d parents are waited for", n)
		}
		time.Sleep(10 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.changed); n != 0 {
			t.Errorf("%d entries stay", n)
		}
	})
}

// Where a child is attached is noted again if the store did not take it, so that its grace
// begins after a restart.
func TestNotedAgain(t *testing.T) {
	scripted(t, Options{}, func(t *testing.T, s *server, at *script) {
		mustSpawn(t, s, Spawn{Child: "c", Limits: Asked{Timeout: new(time.Duration)}})
		begun := time.Now()
		at.store = func(bool) (bool, error) {
			if time.Since(begun) < 5*time.Second {
				return false, kvtest.ErrFault
			}
			return false, nil
		}
		s.w.attach("c", s)
		time.Sleep(10 * time.Second)
		s.w.kill(s, 0)
		next := s.w.start(t.Context(), Options{})
		defer func() { _ = next.Close() }()
		if r := mustEnd(t, next, "c", time.Minute); r.Error != Disconnected {
			t.Errorf("%+v", r)
		}
	})
}
