package mesh

import (
	"fmt"
	"slices"
	"time"
)

// maxGone bounds the bridges that are remembered as gone after a goodbye.
const maxGone = 4 * MaxPeers

// beat says that this bridge is there, and looks who is not any more, until Close.
func (m *Mesh) beat() {
	ticker := time.NewTicker(m.opts.Beat)
	defer ticker.Stop()
	for {
		_ = m.send(Peer{}, &message{kind: kindBeat}) // counted; the next one follows
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
			m.missSilent()
		}
	}
}

func (m *Mesh) missSilent() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.opts.Now()
	for id, p := range m.peers {
		if now.Sub(p.heard) >= m.opts.Silence {
			m.leave(p, "nothing was heard of it")
			delete(m.peers, id)
		}
	}
}

// end lets a peer go for ever that has said goodbye. The caller holds mu.
func (m *Mesh) end(p Peer) {
	if len(m.gone) >= maxGone { // the others are long dead
		clear(m.gone)
	}
	m.gone[p.ID] = max(m.gone[p.ID], p.Epoch)
	if known := m.peers[p.ID]; known != nil && known.Epoch <= p.Epoch {
		m.leave(known, "it has said goodbye")
		delete(m.peers, p.ID)
	}
}

// hear notes that a frame came from a peer; false for a peer to be ignored.
func (m *Mesh) hear(p Peer, goodbye bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.peers[p.ID]
	switch {
	case p.ID == m.self.ID:
		return false
	case m.isGone(p):
		return false
	case goodbye:
		m.end(p)
		return true
	case known != nil && p.Epoch < known.Epoch:
		return false
	case known != nil && p.Epoch > known.Epoch:
		m.leave(known, "it has started again")
		known = nil
	case known == nil && len(m.peers) >= MaxPeers:
		return false
	}
	if known == nil {
		known = &peerState{Peer: p}
		m.peers[p.ID] = known
	}
	known.heard = m.opts.Now()
	if !known.here {
		m.enter(known)
	}
	return true
}

// received counts a message of a peer.
func (m *Mesh) received(from Peer) {
	m.counts.received.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.peers[from.ID]; p != nil && p.Peer == from {
		p.received++
	}
}

// Traffic is what came from each peer that is there, by id.
func (m *Mesh) Traffic() []Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Traffic
	for _, p := range m.peers {
		if p.here {
			all = append(all, Traffic{p.Peer, p.received})
		}
	}
	slices.SortFunc(all, func(a, b Traffic) int { return a.Peer.Compare(b.Peer) })
	return all
}

// isGone reports whether a life of a bridge has ended. The caller holds mu.
func (m *Mesh) isGone(p Peer) bool {
	last, ended := m.gone[p.ID]
	return ended && p.Epoch <= last
}

// enter takes a peer in. The caller holds mu.
func (m *Mesh) enter(p *peerState) {
	p.here = true
	m.opts.Logger.Info("a bridge is there", "bridge", p.ID, "epoch", p.Epoch)
	m.publishPeers()
	m.turns.put(p.Peer, []byte{1})
	peer := p.Peer
	m.running.Go(func() { _ = m.send(peer, &message{kind: kindBeat}) }) // so that it need not wait for the next one
}

// leave lets a peer go: what waits for it ends. The caller holds mu.
func (m *Mesh) leave(p *peerState, why string) {
	if !p.here {
		return
	}
	p.here = false
	m.opts.Logger.Info("a bridge is gone", "bridge", p.ID, "epoch", p.Epoch, "reason", why)
	m.publishPeers()
	m.turns.put(p.Peer, nil)
	gone := p.Peer
	m.asked.end(func(q *question) bool { return q.to == gone }, fmt.Errorf("%w: %v: %s", ErrLost, gone, why))
	m.serving.end(func(k servedKey) bool { return k.from == gone })
}

func (m *Mesh) publishPeers() {
	var live []Peer
	for _, p := range m.peers {
		if p.here {
			live = append(live, p.Peer)
		}
	}
	slices.SortFunc(live, Peer.Compare)
	m.live.Store(&live)
}
