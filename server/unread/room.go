// Package unread bounds the bytes of answers that wait for their readers.
//
// The transport takes an answer of any size from a handler at once, and keeps it until its
// reader lets it through: the call is over by then, and nothing else counts it.
//
// The nouns:
//   - Room: the bytes that such answers may take, shared by tenants and agents.
//   - Answer: a message with its place in the room, on its way into the transport.
//   - Slot: the room that a stream takes before it reads what it is to send.
package unread

import (
	"container/list"
	"context"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/server/conns"
)

const (
	// Small is the size up to which an answer is not counted: those are bounded by the
	// streams of all connections.
	Small = 4 << 10
	// patience is the part of an answer for which a reader has the whole time to stall:
	// who takes less than that in it, at 17 KiB a second, reads nothing.
	patience = 1 << 20
	// maxWaitingCalls is how many calls wait for room with their answers, which are in
	// memory, too. Those of streams are bounded by the streams.
	maxWaitingCalls = 64
	// looks is how often within the time to stall waiters look for stalled readers.
	looks = 8
)

// AnswerRoom is what all answers may take. It is safe for concurrent use.
type AnswerRoom struct {
	pool  *share.Pool
	total int64
	stall time.Duration
	now   func() time.Time
	// waiting has a token for each call that waits.
	waiting chan struct{}

	mu sync.Mutex
	// answers are those in the transport, guarded by mu: the oldest first.
	answers list.List
	// waiters wait for room, guarded by mu. While there are any, watch runs;
	// watched says that it does.
	waiters int
	watched bool
}

// NewRoom returns an empty room over a pool of total bytes. A connection whose reader took
// none of an answer for the time to stall may be closed for it.
func NewRoom(pool *share.Pool, total int, stall time.Duration, now func() time.Time) *AnswerRoom {
	return &AnswerRoom{pool: pool, total: int64(total), stall: stall, now: now, waiting: make(chan struct{}, maxWaitingCalls)}
}

// Delivery is a message on its way to its reader, and its place in the room.
type Delivery struct {
	Message any

	room  *AnswerRoom
	place *share.Holding
	conn  *conns.Conn
	due   time.Time
	stop  func() bool // ends waiting for the connection's end
	entry *list.Element
}

// Take reserves room for a message of a stream, of size bytes, and waits if there is none.
// If there is none, connections whose readers have stalled are closed. It returns nil for
// small messages. It returns the errors of share.Pool.
func (r *AnswerRoom) Take(ctx context.Context, conn *conns.Conn, owner share.Owner, size int) (*Delivery, error) {
	if size <= Small {
		return nil, nil //nolint:nilnil // a nil Answer has no place, and needs none
	}
	place, err := r.take(ctx, owner, int64(size))
	if err != nil {
		return nil, err
	}
	return r.enter(conn, place, size), nil
}

// take takes units of the pool, for which it waits if others have all.
func (r *AnswerRoom) take(ctx context.Context, owner share.Owner, size int64) (*share.Holding, error) {
	place, err := r.pool.TryTake(owner, size)
	if err != nil && size <= r.total {
		r.wait()
		place, err = r.pool.Take(ctx, owner, size)
		r.waited()
	}
	return place, err
}

// wait begins to wait for room, which is made meanwhile where readers have stalled.
func (r *AnswerRoom) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters++; !r.watched {
		r.watched = true
		go r.watch()
	}
}

func (r *AnswerRoom) waited() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters--
}

// watch closes connections that have stalled for as long as somebody waits.
func (r *AnswerRoom) watch() {
	ticker := time.NewTicker(max(r.stall/looks, time.Millisecond))
	defer ticker.Stop()
	for range ticker.C {
		r.mu.Lock()
		if r.waiters == 0 {
			r.watched = false
			r.mu.Unlock()
			return
		}
		stalled := r.stalled()
		r.mu.Unlock()
		closeAll(stalled)
	}
}

// Reserved is room for the answer of a call that is not made yet. On nil its methods do
// nothing.
type Reserved struct{ place *share.Holding }

// Reserve takes room for the answer of a call before it is made, as Take does.
func (r *AnswerRoom) Reserve(ctx context.Context, owner share.Owner, size int) (*Reserved, error) {
	place, err := r.take(ctx, owner, int64(size))
	if err != nil {
		return nil, err
	}
	return &Reserved{place}, nil
}

// Leave gives the room back, unless an answer has it.
func (p *Reserved) Leave() {
	if p != nil {
		p.place.Leave()
	}
}

// give makes the room that of an answer of so many bytes; nil if there is too little.
func (p *Reserved) give(size int) *share.Holding {
	if p == nil || p.place.Resize(int64(size)) != nil {
		p.Leave()
		return nil
	}
	place := p.place
	p.place = nil
	return place
}

// TakeCall is Take for the answer of a call, of which few wait, out of the reservation for
// it.
func (r *AnswerRoom) TakeCall(ctx context.Context, conn *conns.Conn, owner share.Owner, size int, reserved *Reserved) (*Delivery, error) {
	if size <= Small {
		reserved.Leave()
		return nil, nil //nolint:nilnil // see Take
	}
	if place := reserved.give(size); place != nil {
		return r.enter(conn, place, size), nil
	}
	place, err := r.pool.TryTake(owner, int64(size))
	if err == nil {
		return r.enter(conn, place, size), nil
	}
	select {
	case r.waiting <- struct{}{}:
		defer func() { <-r.waiting }()
		return r.Take(ctx, conn, owner, size)
	default:
		return nil, err
	}
}

func (r *AnswerRoom) enter(conn *conns.Conn, place *share.Holding, size int) *Delivery {
	now := r.now()
	a := &Delivery{room: r, place: place, conn: conn, due: now.Add(r.stall * time.Duration(1+size/patience))}
	r.mu.Lock()
	defer r.mu.Unlock()
	a.entry = r.answers.PushBack(a)
	// The transport forgets what it still has of a connection that ends.
	a.stop = conn.AtClose(a.Leave)
	return a
}

// stalled are the connections with answers that are overdue. The caller holds mu.
func (r *AnswerRoom) stalled() (conns []*conns.Conn) {
	now := r.now()
	for e := r.answers.Front(); e != nil; e = e.Next() {
		if a, ok := e.Value.(*Delivery); ok && a.conn != nil && now.After(a.due) {
			conns = append(conns, a.conn)
		}
	}
	return conns
}

func closeAll(stalled []*conns.Conn) {
	for _, conn := range stalled {
		_ = conn.Close() // it is given up
	}
}

// Leave gives the place back. On nil it does nothing, and twice is harmless.
func (a *Delivery) Leave() {
	if a == nil {
		return
	}
	a.room.mu.Lock()
	a.room.answers.Remove(a.entry)
	stop := a.stop
	a.room.mu.Unlock()
	stop()
	a.place.Leave()
}

// Buffer returns data as a buffer that gives the place back once the transport needs it no
// more, and then gives the data to pool; nil: it belongs to others. The data must have
// room for more than 1 KiB, for the transport counts no users of less.
//
// Of a stream that its reader ends just then grpc-go (1.85, preprocessData) drops the buffer
// without a word, so the place is also given back when nothing refers to that any more.
func (a *Delivery) Buffer(data *[]byte, pool mem.BufferPool) mem.Buffer {
	l := &leaving{a, pool}
	runtime.AddCleanup(l, (*Delivery).Leave, a)
	return mem.NewBuffer(data, l)
}

// leaving is a pool for one buffer.
type leaving struct {
	answer *Delivery
	pool   mem.BufferPool
}

// Get is never called: the buffer is there.
func (l *leaving) Get(size int) *[]byte {
	data := make([]byte, size)
	return &data
}

// Put is called when the buffer is not used any more.
func (l *leaving) Put(data *[]byte) {
	if l.pool != nil {
		l.pool.Put(data)
	}
	l.answer.Leave()
}

type callKey struct{}

// Call is a unary call whose answer may get a place: it is known inside the chain who
// asked, and what those outside it see has to be the message itself.
type Call struct{ answer *Delivery }

// WithCall returns a context in which CallOf finds a call.
func WithCall(ctx context.Context) (context.Context, *Call) {
	call := &Call{}
	return context.WithValue(ctx, callKey{}, call), call
}

// CallOf returns the call of a context; nil if there is none.
func CallOf(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

// Hold keeps the place of the call's answer.
func (c *Call) Hold(a *Delivery) { c.answer = a }

// Done returns what is to be sent for the end of the call.
func (c *Call) Done(message any, err error) (any, error) {
	switch {
	case c.answer == nil:
		return message, err
	case err != nil:
		c.answer.Leave()
		return nil, err
	}
	c.answer.Message = message
	return c.answer, nil
}
