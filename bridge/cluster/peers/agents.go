package peers

import (
	"context"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// replica says how far the agents of a peer are known.
type replica struct {
	last    uint64 // the number of its announcements up to which all were heard
	syncing bool
	seen    map[uint64]struct{} // those heard while syncing
}

// tellChanged announces agents of this bridge.
func (p *Peers) tellChanged(dirty map[place]struct{}) {
	if p.mesh.Alone() {
		return // who comes asks for all of them
	}
	var b []byte
	for at := range dirty {
		a := p.parts.Agents.Announce(at.tenant, at.name)
		b = wire.AppendItem(b, fieldItem, a.Encode())
		if len(b) >= batchBytes {
			p.announce(b)
			b = nil
		}
	}
	if len(b) > 0 {
		p.announce(b)
	}
}

// announce publishes agents under the next number or, without any, the last number.
func (p *Peers) announce(items []byte) {
	p.numbering.Lock()
	defer p.numbering.Unlock()
	if len(items) > 0 {
		p.number++
	}
	p.publish(topicAgents, append(wire.AppendUint(nil, fieldNumber, p.number), items...))
}

func (p *Peers) lastNumber() uint64 {
	p.numbering.Lock()
	defer p.numbering.Unlock()
	return p.number
}

// page is a part of what a peer announces.
type page struct {
	number uint64
	items  []agents.Announced
	more   bool
}

func decodePage(b []byte) (out page, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return page{}, err
		}
		switch f.Number {
		case fieldNumber:
			out.number = f.Value
		case fieldMore:
			out.more = f.Value != 0
		case fieldItem:
			a, err := agents.DecodeAnnounced(f.Bytes)
			if err != nil {
				return page{}, err
			}
			out.items = append(out.items, a)
		}
	}
	return out, nil
}

func (p *Peers) hearAgents(from mesh.Peer, payload []byte) {
	told, err := decodePage(payload)
	if err != nil {
		p.logger.Warn("what another bridge says of its agents can't be read", "bridge", from.String(), "error", err)
		return
	}
	p.hearing.Lock()
	defer p.hearing.Unlock()
	if !p.mesh.Here(from) {
		return
	}
	for i := range told.items {
		p.parts.Agents.Learn(from, told.items[i])
	}
	r := p.copies[from]
	switch {
	case r == nil:
		p.sync(from)
	case r.syncing:
		r.seen[told.number] = struct{}{}
	case len(told.items) > 0 && told.number == r.last+1:
		r.last++
	case told.number > r.last:
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
		p.parts.Agents.Forget(at)
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
	done := p.parts.Agents.Relearn(at)
	last, after := uint64(0), place{}
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
		for i := range got.items {
			p.parts.Agents.Learn(at, got.items[i])
			after = place{got.items[i].Tenant, got.items[i].ID}
		}
		if first {
			last = got.number
		}
		if got.more && len(got.items) > 0 {
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

func (p *Peers) ask(at mesh.Peer, after place) (page, error) {
	ctx, cancel := context.WithTimeout(p.ctx, answerTime)
	defer cancel()
	b, err := p.mesh.Request(ctx, at, topicAll, encodePlace(after))
	if err != nil {
		return page{}, err
	}
	return decodePage(b)
}

func (p *Peers) serveAll(_ context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	after := decodePlace(payload)
	b := wire.AppendUint(nil, fieldNumber, p.lastNumber())
	all, more := p.parts.Agents.AnnounceAll(after.tenant, after.name, batchBytes)
	for i := range all {
		b = wire.AppendItem(b, fieldItem, all[i].Encode())
	}
	if more {
		b = wire.AppendNumber(b, fieldMore, 1)
	}
	return b, nil
}

// Delete is agents.Elsewhere's.
func (p *Peers) Delete(ctx context.Context, at mesh.Peer, tenant, id string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := p.mesh.Request(ctx, at, topicDelete, encodePlace(place{tenant, id}))
	if errors.Is(err, mesh.ErrNotSent) {
		return nil // it is gone, and its agents with it
	}
	return err
}

func (p *Peers) serveDelete(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	at := decodePlace(payload)
	_, err := p.parts.Agents.DeleteHere(ctx, at.tenant, at.name)
	return nil, err
}

// TakeGap is agents.Elsewhere's.
func (p *Peers) TakeGap(ctx context.Context, at mesh.Peer, tenant, id string) (agents.Gap, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	b, err := p.mesh.Request(ctx, at, topicGap, encodePlace(place{tenant, id}))
	if err != nil || len(b) == 0 {
		return agents.Gap{}, false, err
	}
	g, err := agents.DecodeGap(b)
	return g, err == nil, err
}

func (p *Peers) serveGap(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	at := decodePlace(payload)
	g, found, err := p.parts.Agents.HandOverGap(ctx, at.tenant, at.name)
	if !found {
		return nil, err
	}
	return g.Encode(), nil
}
