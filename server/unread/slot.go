package unread

import (
	"context"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/server/conns"
)

// Slot is the room that a stream has taken before it read from the store what it is to
// send: pages that were read, and of them the message that is sent next. A stream that
// waits for room has nothing in memory yet. All methods are safe for concurrent use, and a
// nil Slot takes nothing.
type Slot struct {
	room  *AnswerRoom
	conn  *conns.Conn
	owner func() share.Owner

	mu    sync.Mutex
	place *share.Holding // guarded by mu, as what follows; nil for none
	pages int64
	next  int64 // of the message that is sent next
}

// NewSlot returns the empty slot of a stream; owner is whose it is.
func (r *AnswerRoom) NewSlot(conn *conns.Conn, owner func() share.Owner) *Slot {
	return &Slot{room: r, conn: conn, owner: owner}
}

type slotKey struct{}

// WithSlot returns a context in which SlotOf finds a slot.
func WithSlot(ctx context.Context, s *Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// SlotOf returns the slot of the stream of a context; nil if there is none.
func SlotOf(ctx context.Context) *Slot {
	s, _ := ctx.Value(slotKey{}).(*Slot)
	return s
}

// Try takes room for a page of so many bytes; false if there is none at once.
func (s *Slot) Try(size int) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place == nil {
		place, err := s.room.pool.TryTake(s.owner(), int64(size))
		if err != nil {
			return false
		}
		s.place = place
	} else if s.place.Resize(s.pages+s.next+int64(size)) != nil {
		return false
	}
	s.pages += int64(size)
	return true
}

// Take is Try that waits for room, after releasing all that the slot has. It returns the
// errors of share.Pool.
func (s *Slot) Take(ctx context.Context, size int) error {
	if s == nil {
		return nil
	}
	s.Leave()
	place, err := s.room.take(ctx, s.owner(), min(int64(size), s.room.total))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place, s.pages = place, int64(size)
	return nil
}

// Give gives back so much of the pages.
func (s *Slot) Give(size int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages -= min(s.pages, int64(size))
	s.settle()
}

// Hand says that so much of the pages is the message that is sent next, and no other.
func (s *Slot) Hand(size int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = min(s.pages, int64(size))
	s.pages -= s.next
	s.settle()
}

// settle makes the place as large as what the slot has.
func (s *Slot) settle() {
	switch {
	case s.place == nil:
	case s.pages+s.next > 0:
		_ = s.place.Resize(s.pages + s.next) // less than it was
	default:
		s.place.Leave()
		s.place = nil
	}
}

// Leave gives back all that the slot has.
func (s *Slot) Leave() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages, s.next = 0, 0
	s.settle()
}

// Reserve takes room for a message of at most so many bytes before it is made. Until it is
// sent, or another is, the slot has nothing else.
func (s *Slot) Reserve(ctx context.Context, size int) error {
	if s == nil {
		return nil
	}
	if err := s.Take(ctx, size); err != nil {
		return err
	}
	s.Hand(size)
	return nil
}

// Send is Room.Take for a message, which takes its room from the slot if it was handed to
// it. It does not wait for further room.
func (s *Slot) Send(ctx context.Context, size int) (*Delivery, error) {
	s.mu.Lock()
	if s.next == 0 {
		s.mu.Unlock()
		return s.room.Take(ctx, s.conn, s.owner(), size)
	}
	defer s.mu.Unlock()
	var own *share.Holding
	if size > Small {
		own = s.place.Split(min(s.next, int64(size)))
	}
	s.next = 0
	s.settle()
	if own == nil {
		return nil, nil //nolint:nilnil // see Room.Take
	}
	_ = own.Resize(int64(size)) // a few bytes of headers more, for which there may be no room
	return s.room.enter(s.conn, own, size), nil
}
