package mesh

import (
	"errors"
	"fmt"
	"time"
)

// Limits of messages that arrive in parts.
const (
	// maxPartial bounds the incomplete messages of one peer, partialFor the time that one
	// may take.
	maxPartial = 64
	partialFor = time.Minute
)

// send sends a message, part by part.
func (m *Mesh) send(to Peer, msg *message) error {
	if len(msg.payload) > m.opts.MaxMessageBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(msg.payload), m.opts.MaxMessageBytes)
	}
	f := frame{message: *msg, from: m.self, to: to, sent: m.opts.Now(), size: len(msg.payload), parts: partsOf(len(msg.payload))}
	if f.parts > 1 { // one after another, so that a peer has few that are not complete
		m.large.Lock()
		defer m.large.Unlock()
	}
	number := uint64(0)
	for ; f.part < f.parts; f.part++ {
		f.payload = msg.payload[f.part*partBytes : min(len(msg.payload), (f.part+1)*partBytes)]
		if err := m.sendFrame(&f, &number); err != nil {
			m.counts.unsent.Add(1)
			return fmt.Errorf("%w: %w", ErrNotSent, err)
		}
	}
	if msg.kind != kindBeat {
		m.counts.sent.Add(1)
	}
	return nil
}

// sendFrame seals and sends a frame in one step: their numbers rise in the order in which
// they are sent. The first of a message gives it its number.
func (m *Mesh) sendFrame(f *frame, number *uint64) error {
	m.sending.Lock()
	defer m.sending.Unlock()
	if *number == 0 {
		*number = m.seal.number + 1
	}
	f.number = *number
	return m.transport.Send(f.to, m.seal.next(f.encode()))
}

// receiver puts frames together. It is the transport's goroutine's alone.
type receiver struct {
	m       *Mesh
	partial map[Peer][]*partial
}

// partial is a message of which parts are missing.
type partial struct {
	frame
	next    int // part
	payload []byte
	began   time.Time
}

// receive takes a frame in.
func (r *receiver) receive(sealed []byte) {
	m := r.m
	plain, by, number := m.seal.open(sealed)
	if by == nil {
		m.counts.refused.Add(1)
		return
	}
	f, err := decodeFrame(plain, m.opts.MaxMessageBytes)
	if err == nil && f.from == m.self {
		return // its own, from a transport that echoes
	}
	age := m.opts.Now().Sub(f.sent)
	if err != nil || age > maxAge || age < -maxAge || !f.to.IsZero() && f.to != m.self ||
		!by.fresh(f.from, f.to.IsZero(), number) || !m.hear(f.from, f.kind == kindGoodbye) {
		m.counts.refused.Add(1)
		return
	}
	if f.kind == kindGoodbye {
		delete(r.partial, f.from)
	}
	if f.kind == kindBeat || f.kind == kindGoodbye {
		return
	}
	msg, whole := r.join(&f)
	if !whole {
		return
	}
	m.received(f.from)
	if msg.kind == kindRequest && msg.wait > 0 {
		if msg.wait -= max(0, age-maxSkew); msg.wait <= 0 { // it waited here until its sender gave up
			m.counts.dropped.Add(1)
			return
		}
	}
	m.take(f.from, msg)
}

// join adds a part to its message, and returns that when it is whole. Parts of one
// message come in order; where one is missing, the message is lost.
func (r *receiver) join(f *frame) (*message, bool) {
	if f.parts == 1 {
		return &f.message, true
	}
	all := r.partial[f.from]
	now := r.m.opts.Now()
	for i, p := range all {
		switch {
		case p.number == f.number && f.part == p.next && f.size == p.size:
			p.payload = append(p.payload, f.payload...)
			if p.next++; p.next < p.parts {
				return nil, false
			}
			r.keep(f.from, append(all[:i:i], all[i+1:]...))
			p.message.payload = p.payload
			return &p.message, true
		case p.number == f.number:
			r.keep(f.from, append(all[:i:i], all[i+1:]...))
			r.m.counts.dropped.Add(1)
			return nil, false
		}
	}
	if f.part != 0 {
		return nil, false // the rest of one that was dropped
	}
	r.keep(f.from, append(all, &partial{frame: *f, next: 1, payload: append([]byte(nil), f.payload...), began: now}))
	r.makeRoom(f.from, now)
	return nil, false
}

func (r *receiver) keep(of Peer, all []*partial) {
	if r.partial == nil {
		r.partial = make(map[Peer][]*partial)
	}
	if r.partial[of] = all; len(all) == 0 {
		delete(r.partial, of)
	}
}

// makeRoom drops a peer's oldest partial messages while there are too many, they are too
// large together or too old.
func (r *receiver) makeRoom(of Peer, now time.Time) {
	all, size := r.partial[of], 0
	for _, p := range all {
		size += p.size
	}
	for len(all) > 1 && (len(all) > maxPartial || size > 2*r.m.opts.MaxMessageBytes || now.Sub(all[0].began) > partialFor) {
		size -= all[0].size
		all = all[1:]
		r.m.counts.dropped.Add(1)
	}
	r.keep(of, all)
}

// take passes a message on. It does not block.
func (m *Mesh) take(from Peer, msg *message) {
	switch msg.kind {
	case kindPublish:
		in := m.published[msg.topic]
		if in == nil || !in.put(from, msg.payload) {
			m.counts.dropped.Add(1)
		}
	case kindRequest:
		m.serve(from, msg)
	case kindCancel:
		m.serving.end(func(k servedKey) bool { return k == servedKey{from, msg.id} })
	case kindTaken:
		m.asked.taken(from, msg.id)
	case kindAnswer:
		m.asked.settle(from, msg.id, reply{payload: msg.payload})
	case kindFailed:
		m.asked.settle(from, msg.id, reply{err: &FailedError{string(msg.payload)}})
	case kindBusy:
		m.asked.settle(from, msg.id, reply{err: fmt.Errorf("%w: at %v", ErrBusy, from)})
	}
}

// serve begins to answer a request.
func (m *Mesh) serve(from Peer, msg *message) {
	handler := m.served[msg.topic]
	ctx, begun := m.serving.begin(m.ctx, servedKey{from, msg.id}, msg.wait, m.opts.MaxServing)
	if !begun || handler == nil {
		m.counts.dropped.Add(1)
		if begun {
			m.serving.done(servedKey{from, msg.id})
		}
		m.reply(from, &message{kind: kindBusy, id: msg.id})
		return
	}
	go func() {
		defer m.serving.done(servedKey{from, msg.id})
		m.reply(from, &message{kind: kindTaken, id: msg.id})
		payload, err := handler(ctx, from, msg.payload)
		answer := &message{kind: kindAnswer, id: msg.id, payload: payload}
		if err != nil {
			answer = &message{kind: kindFailed, id: msg.id, payload: []byte(err.Error())}
		}
		if err := m.send(from, answer); errors.Is(err, ErrTooLarge) {
			m.reply(from, &message{kind: kindFailed, id: msg.id, payload: []byte(err.Error())})
		}
	}()
}

// reply sends what is lost if it can't be sent: the requester stops waiting by itself.
func (m *Mesh) reply(to Peer, msg *message) { _ = m.send(to, msg) }
