package mesh_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/internal/testkit/meshtest"
)

func TestHub(t *testing.T) {
	meshtest.Run(t, func(testing.TB) meshtest.Network {
		hub := &meshtest.Hub{}
		return meshtest.Network{
			Join: func(testing.TB) mesh.Transport { return hub.Join() },
			Cut: func(_ testing.TB, of mesh.Transport, cut bool) {
				of.(*meshtest.HubTransport).Cut(cut)
			},
		}
	})
}

// A bridge without a mesh has no peers, and everything it sends costs nothing.
func TestAlone(t *testing.T) {
	var m *mesh.Mesh
	m.Handle("a", nil)
	m.Serve("a", nil)
	m.OnPeer(nil)
	if err := m.Open(); err != nil || !m.Alone() || len(m.Peers()) > 0 || m.Stats() != (mesh.Stats{}) {
		t.Errorf("alone %v, %v", m.Alone(), err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := m.Publish("a", nil); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("publishing alone allocates %v times", n)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	hub := &meshtest.Hub{}
	for _, id := range []string{"", string(make([]byte, mesh.MaxIDBytes+1))} {
		if _, err := mesh.New(mesh.Peer{ID: id, Epoch: 1}, hub.Join(), nil); err == nil {
			t.Errorf("an id of %d bytes was taken", len(id))
		}
	}
}
