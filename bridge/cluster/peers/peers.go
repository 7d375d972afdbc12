package peers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The topics of the mesh.
const (
	topicEvents  = "events"  // published: a volatile event
	topicStored  = "stored"  // published: topics with new durable events
	topicResults = "results" // published: a child has its result
	topicAgents  = "agents"  // published: agents that have changed
	topicAll     = "all"     // asked: all agents, page by page
	topicCall    = "call"    // asked: a tool call
	topicDirect  = "direct"  // asked: an event for an agent's newest stream
	topicGap     = "gap"     // asked: what an agent was sent
	topicDelete  = "delete"  // asked: to delete an agent
	topicPlace   = "place"   // asked: a call that touches a workspace
)

const (
	// repeatEvery is how often the number of the last announcement is said again, so that
	// a peer that has lost it asks.
	repeatEvery = 2 * time.Second
	// batchBytes is about how much goes into one message, and one page.
	batchBytes = 256 << 10
	// maxWoken bounds the topics that wait to be announced; what comes then is found when
	// the store announces it.
	maxWoken = 65_536
	// answerTime bounds the questions that are not tool calls.
	answerTime = 5 * time.Second
	// syncPause is the pause before a peer is asked again that did not answer.
	syncPause = time.Second
)

// Options adjusts Peers. Nil and zero fields mean the defaults.
type Options struct {
	// Logger logs what could not be sent. Default silent.
	Logger *slog.Logger
}

// Parts are the bridge's own parts that get news of the others.
type Parts struct {
	Events *events.Bus
	Agents *agents.Directory
	// Places answers calls that touch the workspaces of this bridge.
	Places *places.Places
	// Returned is called for children that have their results. Default nil.
	Returned func(child, parent kv.Scope)
}

// Peers are the other bridges. All methods are safe for concurrent use.
type Peers struct {
	mesh   *mesh.Mesh
	parts  Parts
	logger *slog.Logger
	wake   chan struct{} // holds a token when something is to be sent

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	woken map[topicName]struct{}
	dirty map[topicName]struct{}

	hearing sync.Mutex // held while agents of others are learnt or forgotten; guards copies
	copies  map[mesh.Peer]*replica

	numbering sync.Mutex // guards number
	number    uint64     // of the last announcement
}

var (
	_ events.Elsewhere = (*Peers)(nil)
	_ agents.Elsewhere = (*Peers)(nil)
	_ places.Elsewhere = (*Peers)(nil)
)

// New returns the peers on a mesh, which is not open yet. Nothing is sent before Open.
func New(m *mesh.Mesh, opts *Options) *Peers {
	p := &Peers{
		mesh: m, logger: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1),
		woken: make(map[topicName]struct{}), dirty: make(map[topicName]struct{}), copies: make(map[mesh.Peer]*replica),
	}
	if opts != nil && opts.Logger != nil {
		p.logger = opts.Logger
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Open joins the parts with the others.
func (p *Peers) Open(parts Parts) error {
	p.parts = parts
	p.mesh.Handle(topicEvents, p.hearEvent)
	p.mesh.Handle(topicStored, p.hearStored)
	p.mesh.Handle(topicResults, p.hearResult)
	p.mesh.Handle(topicAgents, p.hearAgents)
	p.mesh.Serve(topicAll, p.serveAll)
	p.mesh.Serve(topicCall, p.serveCall)
	p.mesh.Serve(topicDirect, p.serveDirect)
	p.mesh.Serve(topicGap, p.serveGap)
	p.mesh.Serve(topicDelete, p.serveDelete)
	p.mesh.Serve(topicPlace, p.servePlace)
	p.mesh.OnPeer(p.onPeer)
	p.running.Go(p.send)
	return p.mesh.Open()
}

// Close leaves the mesh.
func (p *Peers) Close() error {
	p.stop()
	err := p.mesh.Close()
	p.running.Wait()
	return err
}

// Volatile is events.Elsewhere's.
func (p *Peers) Volatile(tenant string, e *events.Event, legacy bool) {
	if p.mesh.Alone() {
		return
	}
	p.publish(topicEvents, encodeEvent(tenant, "", e, legacy))
}

func (p *Peers) publish(topic string, payload []byte) {
	if err := p.mesh.Publish(topic, payload); err != nil && p.ctx.Err() == nil {
		p.logger.Warn("could not notify other bridges", "of", topic, "error", err)
	}
}

func (p *Peers) hearEvent(_ mesh.Peer, payload []byte) {
	at, e, legacy, err := decodeEvent(payload)
	if err == nil {
		err = p.parts.Events.Hear(at.Tenant, e, legacy)
	}
	if err != nil && p.ctx.Err() == nil {
		p.logger.Warn("an event of another bridge is refused", "topic", e.Topic, "error", err)
	}
}

// Stored is events.Elsewhere's.
func (p *Peers) Stored(tenant, topic string) {
	if p.mesh.Alone() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.woken) < maxWoken {
		p.woken[topicName{tenant, topic}] = struct{}{}
		p.nudge()
	}
}

// Changed is agents.Elsewhere's.
func (p *Peers) Changed(tenant, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty[topicName{tenant, id}] = struct{}{}
	p.nudge()
}

func (p *Peers) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Result announces to the others that a child has its result.
func (p *Peers) Result(child, parent kv.Scope) {
	if !p.mesh.Alone() {
		p.publish(topicResults, mesh.Encode(result{child.Tenant, child.Owner, parent.Owner}))
	}
}

func (p *Peers) hearResult(_ mesh.Peer, payload []byte) {
	if r, err := mesh.Decode[result](payload); err == nil && p.parts.Returned != nil {
		p.parts.Returned(kv.AgentScope(r.Tenant, r.Child), kv.AgentScope(r.Tenant, r.Parent))
	}
}

// send sends the waiting notices to the others, until Close.
func (p *Peers) send() {
	repeat := time.NewTicker(repeatEvery)
	defer repeat.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-repeat.C:
			if !p.mesh.Alone() {
				p.announce(nil)
			}
			continue
		case <-p.wake:
		}
		woken, dirty := p.take()
		p.tellStored(woken)
		p.tellChanged(dirty)
	}
}

func (p *Peers) take() (woken, dirty map[topicName]struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	woken, dirty = p.woken, p.dirty
	p.woken, p.dirty = make(map[topicName]struct{}), make(map[topicName]struct{})
	return woken, dirty
}

func (p *Peers) tellStored(woken map[topicName]struct{}) {
	var all []topicName
	size := 0
	for at := range woken {
		all = append(all, at)
		if size += len(at.Tenant) + len(at.Name); size >= batchBytes {
			p.publish(topicStored, mesh.Encode(all))
			all, size = nil, 0
		}
	}
	if len(all) > 0 {
		p.publish(topicStored, mesh.Encode(all))
	}
}

func (p *Peers) hearStored(_ mesh.Peer, payload []byte) {
	all, err := mesh.Decode[[]topicName](payload)
	if err != nil {
		return
	}
	for _, at := range all {
		p.parts.Events.Wake(p.ctx, at.Tenant, at.Name)
	}
}
