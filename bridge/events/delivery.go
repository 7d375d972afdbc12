package events

import "time"

// addVolatile queues a volatile event for one of the subscription's selections.
func (s *Subscription) addVolatile(e queueItem, f *fan) {
	s.mu.Lock()
	queued := s.put(e, f)
	s.mu.Unlock()
	if queued {
		s.signal()
	}
}

// put queues a volatile event, lets it wait if its emitter does, which has a fan
// then, or drops it.
func (s *Subscription) put(e queueItem, f *fan) (queued bool) {
	switch {
	case s.over != nil || e.sel.gone || !s.chooses(e.sel, e.event):
		return false
	case (len(s.waiting) == 0 || e.sel.qos == Realtime) && s.hasRoom(e):
		e.queued.hold()
		s.enqueue(e)
		return true
	case s.wait && f != nil && e.sel.qos != Realtime:
		if len(s.waiting) == 0 {
			s.waitBegan = time.Now()
			s.waitUntil = s.waitBegan.Add(s.bus.maxEmitWait - s.waited)
		}
		e.queued.hold()
		e.count.queued(1)
		s.waiting = append(s.waiting, pending{e, f.join(s, s.waitUntil)})
		return false
	}
	s.dropped++
	e.count.lost(1)
	return false
}

// chooses reports whether an event comes through this selection.
func (s *Subscription) chooses(sel *selection, e *Event) bool {
	if !sel.wants(e) {
		return false
	}
	if s.perSelection || len(s.selections) == 1 {
		return true
	}
	for _, other := range s.selections {
		if other != sel && other.before(sel) && other.pattern.Match(e.Topic) && other.wants(e) {
			return false
		}
	}
	return true
}

// before reports whether an event that two selections want comes through this
// one: that with more room, or else the one that was given first.
func (sel *selection) before(other *selection) bool {
	if sel.lane.limit != other.lane.limit {
		return sel.lane.limit > other.lane.limit
	}
	return sel.place < other.place
}

func (s *Subscription) hasRoom(e queueItem) bool {
	return !e.sel.lane.full() && s.volatileBytes+e.size <= MaxVolatileBytes && s.queue.Len()-s.listed < MaxWaitingEvents
}

func (s *Subscription) enqueue(e queueItem) {
	e.sel.lane.waiting++
	s.volatileBytes += e.size
	e.count.queued(1)
	s.queue.Push(e)
}

// forget gives back the room of a volatile event that left the queue.
func (s *Subscription) forget(e queueItem) {
	e.sel.lane.waiting--
	s.volatileBytes -= e.size
	e.queued.release()
	e.count.queued(-1)
}

// addDurable announces an event of its topic to a reader, or without one that the
// store has them up to last.
func (s *Subscription) addDurable(c *cursor, last uint64, e *Event) {
	s.mu.Lock()
	queued := s.putCursor(c, last, e)
	if queued {
		s.weigh(c, len(c.claims))
		s.signal()
	}
	s.unlock()
}

func (s *Subscription) putCursor(c *cursor, last uint64, e *Event) (queued bool) {
	before := c.known
	c.known = max(before, last)
	first := before + 1
	if e != nil {
		first = e.Sequence
	}
	switch {
	case s.over != nil || c.gone || c.next == 0:
		return false
	case c.fresh != nil && !s.putFresh(c, first, last, e):
		return false
	case c.fresh == nil && last < c.next, e == nil && last <= before:
		return false
	case c.fresh == nil && e != nil && !c.late && c.listed == 0 && c.next == e.Sequence && !c.accepts(e):
		c.next++ // no reader needs to wake up for it
		s.rest(c)
		return false
	case c.late:
	case e != nil && s.listed < maxListed:
		s.listed++
		c.listed++
		s.queue.Push(queueItem{cursor: c, upTo: last})
	default:
		c.late = true
		s.late.Push(c)
	}
	return true
}

// putFresh lets events through to a Realtime cursor, or drops them.
func (s *Subscription) putFresh(c *cursor, first, last uint64, e *Event) (admitted bool) {
	if e != nil && (!c.accepts(e) || s.readElsewhere(c, e)) {
		return false
	}
	first = max(first, c.fresh.settled+1)
	if e == nil {
		c.fresh.settled = max(c.fresh.settled, last)
	}
	for sequence := first; sequence <= last; sequence++ {
		if c.fresh.admit(sequence) {
			admitted = true
			continue
		}
		lost := int64(last - sequence + 1)
		s.dropped += lost
		s.bus.counts.of(s.tenant, c.key.topic).lost(lost)
		break
	}
	return admitted
}

// readElsewhere reports whether a selection that skips nothing wants the event as
// well.
func (s *Subscription) readElsewhere(c *cursor, e *Event) bool {
	if s.perSelection {
		return false
	}
	other := s.cursors[cursorKey{c.key.topic, losslessGroup}]
	return other != nil && other.accepts(e)
}

// due is a delivery to be made of a durable event.
type due struct {
	event *Event
	sel   *selection
	past  bool
}

// takeDue makes the next delivery of the event that was read last.
func (s *Subscription) takeDue() (Delivery, bool) {
	last := len(s.due) - 1
	if last < 0 {
		return Delivery{}, false
	}
	next := s.due[last]
	s.due[last] = due{}
	s.due = s.due[:last]
	d := s.deliver(next.event, next.sel, s.bus.counts.of(s.tenant, next.event.Topic))
	d.Past = next.past
	return d, true
}

// popDue makes a due delivery in addition to one already made.
func (s *Subscription) popDue() (Delivery, bool) {
	for last := len(s.due) - 1; last >= 0; last-- {
		s.bus.counts.of(s.tenant, s.due[last].event.Topic).queued(-1)
		if !s.due[last].sel.gone {
			return s.takeDue()
		}
		s.due[last] = due{}
		s.due = s.due[:last]
	}
	return Delivery{}, false
}
