package meshtest

import (
	"errors"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
)

// hubFrames bounds the frames on the way to one bridge of a Hub.
const hubFrames = 4096

var errCut = errors.New("meshtest: the connection is cut")

// Hub joins bridges within one process. The zero value is ready.
type Hub struct {
	mu   sync.Mutex // guards ends
	ends map[mesh.Peer]*HubTransport
}

// HubTransport is the transport of one bridge on a Hub.
type HubTransport struct {
	hub    *Hub
	frames chan []byte
	done   chan struct{}
	ended  sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	self mesh.Peer
	cut  bool
	shut bool
}

// Join returns a transport for one more bridge.
func (h *Hub) Join() *HubTransport {
	return &HubTransport{hub: h, frames: make(chan []byte, hubFrames), done: make(chan struct{})}
}

// Open is mesh.Transport's.
func (t *HubTransport) Open(self mesh.Peer, receive func(frame []byte)) error {
	t.mu.Lock()
	t.self = self
	t.mu.Unlock()
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	if t.hub.ends == nil {
		t.hub.ends = make(map[mesh.Peer]*HubTransport)
	}
	t.hub.ends[self] = t
	t.ended.Go(func() {
		for {
			select {
			case <-t.done:
				return
			case frame := <-t.frames:
				receive(frame)
			}
		}
	})
	return nil
}

// Send is mesh.Transport's. A frame for which there is no room is lost.
func (t *HubTransport) Send(to mesh.Peer, frame []byte) error {
	self, open := t.state()
	if !open {
		return errCut
	}
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	for peer, other := range t.hub.ends {
		if peer == self || !to.IsZero() && peer != to {
			continue
		}
		if _, open := other.state(); !open {
			continue
		}
		select {
		case other.frames <- slices.Clone(frame):
		default:
		}
	}
	return nil
}

func (t *HubTransport) state() (self mesh.Peer, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.self, !t.cut && !t.shut
}

// Cut breaks the bridge's connection to all others, or joins it again.
func (t *HubTransport) Cut(cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = cut
}

// Close is mesh.Transport's.
func (t *HubTransport) Close() error {
	t.mu.Lock()
	first := !t.shut
	t.shut = true
	self := t.self
	t.mu.Unlock()
	if !first {
		return nil
	}
	t.hub.mu.Lock()
	if t.hub.ends[self] == t {
		delete(t.hub.ends, self)
	}
	t.hub.mu.Unlock()
	close(t.done)
	t.ended.Wait()
	return nil
}
