package recall_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// neighbour is the way to the one server that has the workspace.
type neighbour struct {
	at    *places.Places
	calls int
}

func (n *neighbour) Forward(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	n.calls++
	return n.at.Handle(ctx, payload), nil
}

// What another server shows of an AGENTS.md is at most two seconds old, and so is that there
// is none; it is asked no more often than that. The server that has the workspace reads the
// file each time.
func TestAgentsElsewhere(t *testing.T) {
	files, err := native.NewReader("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	synctest.Test(t, func(t *testing.T) {
		way := &neighbour{}
		var servers []*recall.AgentsFiles
		var all []*places.Places
		for i, peer := range kvtest.Peers(2) {
			name := string(rune('a' + i))
			registry, err := registry.Join(t.Context(), peer, &registry.Options{Name: name, Address: name + ":1", Workspace: name + ":/work"})
			if err != nil {
				t.Fatal(err)
			}
			writer := kv.NewWriter(peer, nil)
			t.Cleanup(func() {
				if err := errors.Join(writer.Close(), registry.Close(), peer.Close()); err != nil {
					t.Error(err)
				}
			})
			p := places.New(peer, writer, registry, &places.Options{Elsewhere: way})
			own := folder{}
			if i == 0 {
				own.root, way.at = root, p
			}
			a := recall.NewAgentsFiles(own, files)
			a.Join(places.Remote(p, "agents.md", false, a.Here))
			servers, all = append(servers, a), append(all, p)
		}
		synctest.Wait() // until both see both
		scope := kv.AgentScope("acme", "x")
		if at, err := all[0].Where(t.Context(), scope); err != nil || !at.IsZero() {
			t.Fatalf("the workspace is at %v, %v", at, err)
		}
		shows := func(i int, want string) {
			t.Helper()
			head, err := servers[i].Head(t.Context(), scope)
			if err != nil || string(head.Text) != want || want == "" != (head.Size < 0) {
				t.Errorf("server %d shows %q of %d bytes, %v; want %q", i, head.Text, head.Size, err, want)
			}
		}
		before := ""
		shows(1, before)
		for _, now := range []string{"one", "another", ""} {
			path := filepath.Join(dir, "AGENTS.md")
			err := os.WriteFile(path, []byte(now), 0o600)
			if now == "" {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			shows(0, now)
			asked := way.calls
			time.Sleep(2*time.Second - time.Nanosecond)
			shows(1, before)
			if way.calls != asked || !servers[1].Known(scope) {
				t.Errorf("%q: asked %d times within two seconds", now, way.calls-asked)
			}
			time.Sleep(time.Nanosecond)
			shows(1, now)
			before = now
		}
	})
}
