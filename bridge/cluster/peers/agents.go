package peers

import (
	"context"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
)

// replica says how far the agents of a peer are known.
type replica struct {
	last    uint64 // the number of its announcements up to which all were heard
	syncing bool
	seen    map[uint64]struct{} // those heard while syncing
}

// tellChanged announces agents of this bridge.
func (p *Peers) tellChanged(dirty map[topicName]struct{}) {
	if p.mesh.Alone() {
		return // who comes asks for all of them
	}
	var items []agents.Announced
	size := 0
	for at := range dirty {
		a := p.parts.Agents.Announce(at.Tenant, at.Name)
		items = append(items, a)
		if size += a.Bytes(); size >= batchBytes {
			p.announce(items)
			items, size = nil, 0
		}
	}
	if len(items) > 0 {
		p.announce(items)
	}
}

// announce publishes agents under the next number or, without any, the last number.
func (p *Peers) announce(items []agents.Announced) {
	p.numbering.Lock()
	defer p.numbering.Unlock()
	if len(items) > 0 {
		p.number++
	}
	p.publish(topicAgents, mesh.Encode(page{Number: p.number, Items: items}))
}

func (p *Peers) lastNumber() uint64 {
	p.numbering.Lock()
	defer p.numbering.Unlock()
	return p.number
}

func (p *Peers) hearAgents(from mesh.Peer, payload []byte) {
	told, err := mesh.Decode[page](payload)
	if err != nil {
		p.logger.Warn("could not read another bridge's report on its agents", "bridge", from.String(), "error", err)
		return
	}
	p.hearing.Lock()
	defer p.hearing.Unlock()
	if !p.mesh.Here(from) {
		return
	}
	for i := range told.Items {
		p.parts.Agents.Learn(from.String(), told.Items[i])
	}
	r := p.copies[from]
	switch {
	case r == nil:
		p.sync(from)
	case r.syncing:
		r.seen[told.Number] = struct{}{}
	case len(told.Items) > 0 && told.Number == r.last+1:
		r.last++
	case told.Number > r.last:
		p.sync(from)
	}
}

// onPeer handles peers that come and go.
func (p *Peers) onPeer(at mesh.Peer, here bool) {
	p.hearing.Lock()
	defer p.hearing.Unlock()
	switch {
	case here && p.mesh.Here(at) && p.copies[at] == nil:
		p.sync(at)
	case !here && !p.mesh.Here(at):
		delete(p.copies, at)
		p.parts.Agents.Forget(at.String())
	}
}

// sync begins to ask a peer for all of its agents. The caller holds hearing.
func (p *Peers) sync(at mesh.Peer) {
	r := p.copies[at]
	if r == nil {
		r = &replica{}
		p.copies[at] = r
	}
	if r.syncing || p.ctx.Err() != nil {
		return
	}
	r.syncing, r.seen = true, make(map[uint64]struct{})
	p.running.Go(func() {
		for !p.syncOnce(at, r) {
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(syncPause):
			}
		}
	})
}

// syncOnce asks for all agents; true when that is done, or of no use.
func (p *Peers) syncOnce(at mesh.Peer, r *replica) bool {
	done := p.parts.Agents.Relearn(at.String())
	last, after := uint64(0), topicName{}
	for first := true; ; first = false {
		got, err := p.ask(at, after)
		p.hearing.Lock()
		if p.copies[at] != r || !p.mesh.Here(at) {
			p.hearing.Unlock()
			return true
		}
		if err != nil {
			p.hearing.Unlock()
			p.logger.Warn("another bridge does not say which agents it has", "bridge", at.String(), "error", err)
			return false
		}
		for i := range got.Items {
			p.parts.Agents.Learn(at.String(), got.Items[i])
			after = topicName{got.Items[i].Tenant, got.Items[i].ID}
		}
		if first {
			last = got.Number
		}
		if got.More && len(got.Items) > 0 {
			p.hearing.Unlock()
			continue
		}
		done()
		complete := r.settle(last)
		p.hearing.Unlock()
		return complete
	}
}

// settle ends a sync with what was known at a number; false when something that came later
// was lost.
func (r *replica) settle(last uint64) bool {
	for {
		if _, heard := r.seen[last+1]; !heard {
			break
		}
		last++
	}
	for number := range r.seen {
		if number > last {
			r.seen = make(map[uint64]struct{})
			return false
		}
	}
	r.last, r.syncing, r.seen = last, false, nil
	return true
}

func (p *Peers) ask(at mesh.Peer, after topicName) (page, error) {
	ctx, cancel := context.WithTimeout(p.ctx, answerTime)
	defer cancel()
	b, err := p.mesh.Request(ctx, at, topicAll, mesh.Encode(after))
	if err != nil {
		return page{}, err
	}
	return mesh.Decode[page](b)
}

func (p *Peers) serveAll(_ context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	after, err := mesh.Decode[topicName](payload)
	if err != nil {
		return nil, err
	}
	out := page{Number: p.lastNumber()}
	out.Items, out.More = p.parts.Agents.AnnounceAll(after.Tenant, after.Name, batchBytes)
	return mesh.Encode(out), nil
}

// Delete is agents.Elsewhere's.
func (p *Peers) Delete(ctx context.Context, at, tenant, id string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := p.mesh.Request(ctx, mesh.ParsePeer(at), topicDelete, mesh.Encode(topicName{tenant, id}))
	if errors.Is(err, mesh.ErrNotSent) {
		return nil // it is gone, and its agents with it
	}
	return err
}

func (p *Peers) serveDelete(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	at, err := mesh.Decode[topicName](payload)
	if err == nil {
		_, err = p.parts.Agents.DeleteHere(ctx, at.Tenant, at.Name)
	}
	return nil, err
}

// TakeGap is agents.Elsewhere's.
func (p *Peers) TakeGap(ctx context.Context, at, tenant, id string) (agents.Gap, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	b, err := p.mesh.Request(ctx, mesh.ParsePeer(at), topicGap, mesh.Encode(topicName{tenant, id}))
	if err != nil {
		return agents.Gap{}, false, err
	}
	h, err := mesh.Decode[handed](b)
	return h.Gap, h.Found && err == nil, err
}

func (p *Peers) serveGap(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	at, err := mesh.Decode[topicName](payload)
	if err != nil {
		return nil, err
	}
	var h handed
	if h.Gap, h.Found, err = p.parts.Agents.HandOverGap(ctx, at.Tenant, at.Name); !h.Found && err != nil {
		return nil, err
	}
	return mesh.Encode(h), nil
}
