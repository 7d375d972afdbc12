package places_test

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// world is several servers on one store, each with a folder of its own.
type world struct {
	peers  []*kvtest.Peer
	joined []*registry.Registry
	places []*places.Places
	failed error // what a call to another server ends with
}

// Forward reaches the server of a bridge.
func (w *world) Forward(ctx context.Context, at mesh.Peer, payload []byte) ([]byte, error) {
	if w.failed != nil {
		return nil, w.failed
	}
	for i, r := range w.joined {
		if r.Self().ID == at.ID {
			return w.places[i].Handle(ctx, payload), nil
		}
	}
	return nil, mesh.ErrNotSent
}

// MustOpen opens n servers.
func MustOpen(t *testing.T, n int, perAgent bool) *world {
	t.Helper()
	w := &world{}
	for i, peer := range kvtest.Peers(n) {
		name := string(rune('a' + i))
		registry, err := registry.Join(t.Context(), peer, &registry.Options{Name: name, Address: name + ":1", Workspace: name + ":/work"})
		if err != nil {
			t.Fatal(err)
		}
		writer := kv.NewWriter(peer, nil)
		w.peers, w.joined = append(w.peers, peer), append(w.joined, registry)
		w.places = append(w.places, places.New(peer, writer, registry, &places.Options{PerAgent: perAgent, Elsewhere: w}))
		t.Cleanup(func() {
			if err := errors.Join(writer.Close(), registry.Close(), peer.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Wait() // until all see all
	return w
}

var agent = kv.AgentScope("acme", "x")

// Servers that a first call reaches at the same time agree on one owner.
func TestFirstCallsAgree(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := MustOpen(t, 4, false)
			var all sync.WaitGroup
			at := make([]mesh.Peer, len(w.places))
			for i, p := range w.places {
				all.Go(func() {
					var err error
					if at[i], err = p.Where(t.Context(), agent); err != nil {
						t.Error(err)
					}
					if at[i].IsZero() {
						at[i].ID = w.joined[i].Self().ID
					}
				})
			}
			all.Wait()
			for i := range at {
				if at[i].ID != at[0].ID {
					t.Fatalf("%d goes to %v, 0 to %v", i, at[i], at[0])
				}
			}
		})
	}
}

// A workspace is that of the tenant, or of the agent; it is moved, and one whose server is
// gone is away.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := MustOpen(t, 3, true)
		other := kv.AgentScope("acme", "y")
		for i, scope := range []kv.Scope{agent, other} {
			if at, err := w.places[i].Where(t.Context(), scope); err != nil || !at.IsZero() {
				t.Fatalf("%v: %v %v", scope, at, err)
			}
		}
		if at, err := w.places[0].Where(t.Context(), other); err != nil || at.ID != w.joined[1].Self().ID {
			t.Errorf("the other agent's is at %v %v", at, err)
		}
		if _, _, err := w.places[0].Move(t.Context(), agent, "z"); !errors.Is(err, places.ErrUnknown) {
			t.Errorf("moved to nobody: %v", err)
		}
		before, after, err := w.places[2].Move(t.Context(), agent, "c")
		if err != nil || before.Server != "a" || after.Server != "c" || !after.Here {
			t.Errorf("moved from %v to %v: %v", before, after, err)
		}
		if err := w.joined[2].Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, err = w.places[0].Where(t.Context(), agent)
		if gone, ok := errors.AsType[*places.Error](err); !ok || !errors.Is(err, places.ErrAway) || gone.Owner.Server != "c" {
			t.Errorf("its server is gone: %v", err)
		}
	})
}

// What becomes of a call on its way is told: nothing ran, or it may have.
func TestForwardFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := MustOpen(t, 2, false)
		if _, err := w.places[0].Where(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
		at, err := w.places[1].Where(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		forward := func() error {
			_, err := w.places[1].Forward(t.Context(), agent, at, "read", nil)
			return err
		}
		if err := forward(); !errors.Is(err, places.ErrAway) {
			t.Errorf("one that serves nothing yet: %v", err)
		}
		w.places[0].Serve("read", func(context.Context, []byte) []byte { return []byte("x") })
		if err := forward(); err != nil {
			t.Error(err)
		}
		for failed, want := range map[error]error{mesh.ErrNotSent: places.ErrAway, mesh.ErrLost: places.ErrLost, mesh.ErrBusy: mesh.ErrBusy} {
			if w.failed = failed; !errors.Is(forward(), want) {
				t.Errorf("%v: %v, want %v", failed, forward(), want)
			}
		}
	})
}

// maker remembers folders.
type maker map[kv.Scope]bool

func (m maker) Make(scope kv.Scope) error {
	if m[scope] {
		return fs.ErrExist
	}
	m[scope] = true
	return nil
}

func (m maker) Remove(scope kv.Scope) { delete(m, scope) }

// Folders of children are made and removed where the workspace is.
func TestFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := MustOpen(t, 2, false)
		here, there := maker{}, maker{}
		a, b := places.NewFolders(w.places[0], here), places.NewFolders(w.places[1], there)
		child := kv.AgentScope("acme", "child")
		if err := errors.Join(a.Make(agent), b.Make(child)); err != nil || !here[child] || len(there) > 0 {
			t.Errorf("made here %v, there %v: %v", here, there, err)
		}
		if err := b.Make(child); !errors.Is(err, fs.ErrExist) {
			t.Errorf("made twice: %v", err)
		}
		if b.Remove(child); here[child] {
			t.Error("it was not removed")
		}
	})
}
