package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
)

// meshMetrics shows what a mesh does, by this server's id. A peer's series ends when it goes.
type meshMetrics struct {
	mesh *mesh.Mesh
	peers, links, serving, from,
	sent, received, dropped, unsent, refused *prometheus.Desc
}

// WatchMesh adds the figures about the mesh, where there is one.
func (m *Metrics) WatchMesh(with *mesh.Mesh) {
	if m != nil && with != nil {
		m.registry.MustRegister(newMeshMetrics(with))
	}
}

func newMeshMetrics(with *mesh.Mesh) *meshMetrics {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("loom_bridge_mesh_"+name, help, variable, prometheus.Labels{"bridge": with.Self().ID})
	}
	return &meshMetrics{
		mesh:     with,
		peers:    desc("peers", "Servers that are there."),
		links:    desc("links", "Routes to other servers, or the connection to the NATS server."),
		serving:  desc("requests", "Requests of other servers that run."),
		from:     desc("received_from_total", "Messages that came from a server since it is there.", "peer"),
		sent:     desc("sent_total", "Messages, requests and answers that were sent."),
		received: desc("received_total", "Messages, requests and answers that came."),
		dropped:  desc("dropped_total", "Received messages that were dropped: a queue was full, or no handler was registered."),
		unsent:   desc("unsent_total", "Messages that could not be sent."),
		refused:  desc("refused_total", "Messages that came and are not believed: malformed, foreign, late, or of a server that is gone."),
	}
}

// Describe is prometheus.Collector's.
func (m *meshMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.peers, m.links, m.serving, m.from, m.sent, m.received, m.dropped, m.unsent, m.refused} {
		to <- desc
	}
}

// Collect is prometheus.Collector's.
func (m *meshMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.mesh.Stats()
	for desc, value := range map[*prometheus.Desc]int{m.peers: s.Peers, m.links: s.Links, m.serving: s.Serving} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	for desc, value := range map[*prometheus.Desc]uint64{
		m.sent: s.Sent, m.received: s.Received, m.dropped: s.Dropped, m.unsent: s.Unsent, m.refused: s.Refused,
	} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value))
	}
	for _, t := range m.mesh.Traffic() {
		to <- prometheus.MustNewConstMetric(m.from, prometheus.CounterValue, float64(t.Received), t.Peer.ID)
	}
}
