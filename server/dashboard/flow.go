package dashboard

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

type (
	flowGraph struct {
		Nodes     []*node `json:"nodes"`
		Flows     []*flow `json:"flows"`
		Timestamp string  `json:"timestamp"`
	}
	node struct {
		ID           string   `json:"id"`
		NodeType     string   `json:"node_type"`
		EventCount   int64    `json:"event_count"`
		Topics       []string `json:"topics"`
		LastActiveMs int64    `json:"last_active_ms"`
	}
	flow struct {
		Source      string `json:"source"`
		Target      string `json:"target"`
		Topic       string `json:"topic"`
		Count       int64  `json:"count"`
		LastEventMs int64  `json:"last_event_ms"`
	}
)

// Bounds of a graph: flows, and topics of a node.
const (
	maxFlows  = 2_000
	maxTopics = 20
)

// Sorts of nodes. The bus is one, where nobody listens to what an agent emits.
const (
	nodeAgent = "agent"
	nodeTool  = "tool"
	nodeBus   = "eventbus"
	busID     = "EventBus"
)

type flowKey struct{ source, target, topic string }

// graph is one while it is made.
type graph struct {
	nodes map[string]*node
	flows map[flowKey]*flow
}

// pass counts what went from one node to another.
func (g *graph) pass(source, target, sort, topic string, at time.Time) {
	k, ms := flowKey{source, target, topic}, at.UnixMilli()
	f := g.flows[k]
	if f == nil {
		if len(g.flows) >= maxFlows {
			return
		}
		f = &flow{Source: source, Target: target, Topic: topic}
		g.flows[k] = f
	}
	f.Count++
	f.LastEventMs = max(f.LastEventMs, ms)
	for _, n := range []*node{g.node(source, nodeAgent), g.node(target, sort)} {
		n.EventCount++
		n.LastActiveMs = max(n.LastActiveMs, ms)
		if len(n.Topics) < maxTopics && !slices.Contains(n.Topics, topic) {
			n.Topics = append(n.Topics, topic)
		}
	}
}

func (g *graph) node(id, sort string) *node {
	if g.nodes[id] == nil {
		g.nodes[id] = &node{ID: id, NodeType: sort, Topics: []string{}}
	}
	return g.nodes[id]
}

// flow is who sent what to whom, and who called which tool.
func (h *Handler) flow(r *http.Request, tenant string) (any, error) {
	g := graph{map[string]*node{}, map[flowKey]*flow{}}
	known := h.agents(tenant)
	for _, a := range known {
		g.node(a.ID, nodeAgent).LastActiveMs = a.LastSeen.UnixMilli()
	}
	err := h.recent(r.Context(), tenant, func(e *events.Event) {
		heard := false
		for _, a := range known {
			if a.ID != e.Source && a.Listens(e.Topic) {
				heard = true
				g.pass(senderOf(e), a.ID, nodeAgent, e.Topic, e.Time)
			}
		}
		if !heard {
			g.pass(senderOf(e), busID, nodeBus, e.Topic, e.Time)
		}
	})
	if err != nil {
		return nil, err
	}
	calls, err := h.calls(r.Context(), tenant)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		g.pass(c.Agent, c.Tool, nodeTool, c.Tool, c.Time)
	}
	out := flowGraph{slices.AppendSeq([]*node{}, maps.Values(g.nodes)), slices.AppendSeq([]*flow{}, maps.Values(g.flows)), stamp(time.Now())}
	slices.SortFunc(out.Nodes, func(a, b *node) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(out.Flows, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Topic, b.Topic))
	})
	return out, nil
}
