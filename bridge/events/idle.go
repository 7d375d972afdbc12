package events

// Limits of the cursors that a subscription keeps.
const (
	// maxIdleCursors bounds the cursors that a subscription keeps in topics of
	// its patterns where it has nothing to read. A dropped one is made again
	// before the next event of its topic.
	maxIdleCursors = 64
	// maxPendingCursors bounds the topics that a subscription has something to
	// read in, and maxPendingClaims the same with each topic counted for each
	// selection that matches it. Durable events wait in the store, but each such
	// topic takes some hundred bytes. One with more ends with ErrSlowSubscriber.
	maxPendingCursors = 8 << 10
	maxPendingClaims  = 64 << 10
)

// settle lets a cursor rest that has nothing to read, and stands nowhere any more.
func (s *Subscription) settle(c *cursor) {
	if !c.gone && !c.late && c.listed == 0 && !c.replaying && !c.pending() {
		s.rest(c)
	}
}

// rest marks a cursor with nothing to read as droppable, and drops the ones marked longest
// ago if there are too many.
func (s *Subscription) rest(c *cursor) {
	s.weigh(c, 0)
	if !c.idle && !c.pinned() {
		c.idle = true
		s.idle.Push(c)
	}
	// Two at a time: some can't be dropped when they are looked at.
	for i := 0; i < 2 && s.idle.Len() > maxIdleCursors; i++ {
		s.dropOldest()
	}
}

// dropOldest drops the cursor that has had nothing to read the longest.
func (s *Subscription) dropOldest() {
	oldest, _ := s.idle.Pop()
	oldest.idle = false
	if oldest.gone || oldest.late || oldest.listed > 0 || oldest.pending() || oldest.pinned() {
		return // it is put here again when it has nothing to read
	}
	if !oldest.topic.drop(oldest) {
		oldest.idle = true
		s.idle.Push(oldest)
		return
	}
	s.discard(oldest)
}

// weigh counts a cursor as having something to read, with weight claims; 0 removes it.
func (s *Subscription) weigh(c *cursor, weight int) {
	switch {
	case c.weight == 0 && weight > 0:
		s.behind++
	case c.weight > 0 && weight == 0:
		s.behind--
	}
	s.weight += weight - c.weight
	c.weight = weight
	s.slow = s.slow || s.behind > maxPendingCursors || s.weight > maxPendingClaims
}

// unlock gives up the lock, and ends the subscription if it is too far behind.
func (s *Subscription) unlock() {
	slow := s.slow && s.over == nil
	s.mu.Unlock()
	if slow {
		s.end(ErrSlowSubscriber)
	}
}
