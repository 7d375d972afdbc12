package events

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

// popDue makes a delivery that is due besides one that was made.
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

// forgetDue drops what is due.
func (s *Subscription) forgetDue() {
	if n := len(s.due); n > 0 {
		s.bus.counts.of(s.tenant, s.due[0].event.Topic).queued(-int64(n))
	}
	s.due = nil
}
