package events

import (
	"container/heap"
	"context"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

// Limits of what a replay holds of all its topics together. Each has its share,
// and at most one event at a time is larger than that.
const (
	maxReplayBytes  = 16 << 20
	maxReplayEvents = 16 << 10
)

// replay brings the past of several topics back in the order of the events' times.
// The subscription's lock guards it. What happens from now on waits until the
// replay is through.
type replay struct {
	unread []*cursor // whose next event is not known
	heads  replayHeap
	// detached are cursors that only the replay knows: their topics have many others
	// next to them, and nothing new. A cursor whose topic is emitted on is attached, and a
	// finished one is dropped.
	detached map[cursorKey]*cursor
}

// nextEvent is the next event of a cursor, and when it was taken. Whoever emits one
// event after another has them in order by this: an event was taken after the one
// before it was stored, and so after all that stand before that one in its topic.
type nextEvent struct {
	time     time.Time
	sequence uint64
}

// replayHeap is a heap of cursors.
type replayHeap []*cursor

func (h replayHeap) Len() int { return len(h) }

func (h replayHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Less also orders events of the same time: as the last resort by the cursor they are read
// from.
func (h replayHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case !a.head.time.Equal(b.head.time):
		return a.head.time.Before(b.head.time)
	case a.head.sequence != b.head.sequence:
		return a.head.sequence < b.head.sequence
	case a.key.topic != b.key.topic:
		return a.key.topic < b.key.topic
	}
	return a.key.group < b.key.group
}

// Push is heap.Interface's.
func (h *replayHeap) Push(x any) { *h = append(*h, x.(*cursor)) }

// Pop is heap.Interface's.
func (h *replayHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}

// inReplay reports whether the next event of the cursor belongs to a replay.
func (c *cursor) inReplay() bool { return c.reaches(c.past) }

// replays makes everything that the store has of a cursor's topic part of the
// replay.
func (s *Subscription) replays(c *cursor) {
	c.past = max(c.past, c.known)
	if c.replaying || !c.inReplay() {
		return
	}
	c.replaying = true
	s.replay.unread = append(s.replay.unread, c)
	s.signal()
}

// share is what one topic may hold of the replay.
func (r *replay) share() store.Limit {
	n := len(r.unread) + len(r.heads) + 1
	return store.Limit{Events: min(max(maxReplayEvents/n, 1), store.MaxPageEvents), Bytes: min(maxReplayBytes/n, store.MaxPageBytes)}
}

// nextUnread takes out a cursor whose next event has to be looked up.
func (s *Subscription) nextUnread() (c *cursor, of *topic, at uint64, limit store.Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := len(s.replay.unread); n > 0; n = len(s.replay.unread) {
		c = s.replay.unread[n-1]
		s.replay.unread = s.replay.unread[:n-1]
		if c.inReplay() {
			return c, c.topic, c.position(), s.replay.share()
		}
		s.leaveReplay(c)
	}
	return nil, nil, 0, store.Limit{}
}

// lookUp finds out what comes next in each topic of the replay.
func (s *Subscription) lookUp(ctx context.Context) error {
	for {
		c, of, at, limit := s.nextUnread()
		if c == nil {
			return nil
		}
		h, err := s.bus.nextIn(ctx, c, of, at, limit)
		s.mu.Lock()
		if err != nil {
			s.replay.unread = append(s.replay.unread, c)
		} else {
			c.head = h
			heap.Push(&s.replay.heads, c)
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// nextIn reads on in a topic if nothing of it is held, and returns what comes next.
// It does not hold more than the limit.
func (b *Bus) nextIn(ctx context.Context, c *cursor, of *topic, position uint64, limit store.Limit) (nextEvent, error) {
	c.limit = limit
	c.skipTo(position)
	if len(c.page) == 0 {
		page, _, err := b.turnPage(ctx, c, of, position)
		if err != nil {
			return nextEvent{}, err
		}
		c.page = page
	}
	return c.nextHeld(position), nil
}

// nextHeld is the head of the page; without one that of an event that is gone,
// which comes first. A page of one event that is larger than its share is dropped.
func (c *cursor) nextHeld(position uint64) nextEvent {
	h := nextEvent{sequence: position}
	size := 0
	for i := range c.page {
		size += c.page[i].Size()
	}
	if len(c.page) > 0 {
		h.time = c.page[0].Time
	}
	if size > c.limit.Bytes {
		c.dropPage() // it is read again when its turn comes
	}
	return h
}

// popReplay returns the next cursor of the replay; nil when there is none.
func (s *Subscription) popReplay() *cursor {
	for len(s.replay.heads) > 0 {
		c := heap.Pop(&s.replay.heads).(*cursor)
		if c.inReplay() {
			return c
		}
		s.leaveReplay(c)
	}
	return nil
}

// leaveReplay lets a cursor go on with what happens from now on.
func (s *Subscription) leaveReplay(c *cursor) {
	c.replaying, c.limit = false, store.Limit{}
	switch {
	case c.gone:
	case s.replay.detached[c.key] == c:
		s.dropDetached(c)
	default:
		s.putBack(c, false)
	}
}

// detachedBytes is about what a detached cursor takes in memory.
const detachedBytes = 1 << 10

// detach makes the past of a topic part of the replay without a cursor that emitters
// know of. The room for it was counted.
func (s *Subscription) detach(r storedPast) {
	for _, cl := range r.claims {
		key := s.keyOf(cl.sel, r.topic.scope.Owner)
		c := s.replay.detached[key]
		if c == nil {
			c = s.newCursor(key, cl.sel, r.topic)
			if s.replay.detached == nil {
				s.replay.detached = make(map[cursorKey]*cursor)
			}
			s.replay.detached[key] = c
			s.index.queued.Note(detachedBytes)
		}
		c.known = r.last
		cl.past.last = r.last
		c.claim(cl)
		s.replays(c)
	}
	for _, cl := range r.claims {
		if c := s.replay.detached[s.keyOf(cl.sel, r.topic.scope.Owner)]; c != nil && !c.replaying {
			s.dropDetached(c)
		}
	}
}

// dropDetached forgets a detached cursor.
func (s *Subscription) dropDetached(c *cursor) {
	c.gone = true
	if c.fresh != nil {
		c.fresh.clear()
	}
	delete(s.replay.detached, c.key)
	s.index.queued.Sub(detachedBytes)
}

// attachDetached makes a detached cursor, if there is one, known to its topic, which
// the caller holds.
func (s *Subscription) attachDetached(key cursorKey, t *topic) *cursor {
	c := s.replay.detached[key]
	if c == nil {
		return nil
	}
	delete(s.replay.detached, key)
	s.index.queued.Sub(detachedBytes)
	t.raise(c.topic.last.Load())
	c.topic = s.bus.hold(t.scope, true)
	s.cursors[key] = c
	c.topic.attach(c)
	s.weigh(c, len(c.claims))
	return c
}
