package agents

import (
	"slices"
	"time"
)

// comeback is how long an agent may take to open a stream again after one broke:
// longer than loom-py ever waits between two attempts. Until then the gap of that
// stream is kept even if an older one, which may be dead as well, breaks after it.
const comeback = 10 * time.Second

// gapSlot is what the streams of one agent have been given. The keeper's mu guards
// it.
type gapSlot struct {
	streams []*streamMarks // marked streams that have not ended, by generation
	left    *Gap           // of a stream that broke; not taken yet
	// The fields up to lost matter where other servers have the store, too.
	claim   claim // which the stored gap has; none until the first commit
	opening bool  // a stream has taken the gap and is not marked yet
	handed  *Gap  // what waits to be stored for a stream of another server
	lost    bool  // another server has the gap: nothing is stored any more

	marked   time.Time
	version  uint64 // raised with each change
	stored   uint64 // the version in the store
	storedAt time.Time
	waiting  []chan<- error // who waits for the next store
}

// streamMarks is what one stream has been given.
type streamMarks struct {
	link   *Link
	marks  marks
	taken  bool      // a newer stream goes on from here
	closed time.Time // when the link was closed without a word on how it ended
}

// newest returns the stream that the agent is served by; nil for none.
func (s *gapSlot) newest() *streamMarks {
	if len(s.streams) == 0 {
		return nil
	}
	return s.streams[len(s.streams)-1]
}

func (s *gapSlot) of(l *Link) *streamMarks {
	if i := s.index(l); i >= 0 {
		return s.streams[i]
	}
	return nil
}

func (s *gapSlot) index(l *Link) int {
	return slices.IndexFunc(s.streams, func(st *streamMarks) bool { return st.link == l })
}

// enter adds a stream. The newest one takes over from those before it, unless another server
// has taken the gap since.
func (s *gapSlot) enter(l *Link, at time.Time) *streamMarks {
	i := len(s.streams)
	for i > 0 && s.streams[i-1].link.generation > l.generation {
		i--
	}
	st := &streamMarks{link: l, taken: i < len(s.streams)}
	if !st.taken {
		s.takeAll(at)
	}
	s.streams = slices.Insert(s.streams, i, st)
	s.opening = false
	if s.lost {
		s.takeAll(at)
	}
	return st
}

// takeAll says that a newer stream goes on from here.
func (s *gapSlot) takeAll(at time.Time) {
	s.left = nil
	for _, st := range s.streams {
		st.taken = true
		st.link.isTaken(at)
	}
}

// isTaken closes GapTaken. The caller holds the keeper's mu.
func (l *Link) isTaken(at time.Time) {
	select {
	case <-l.gapTaken:
	default:
		l.gapTakenAt = at
		close(l.gapTaken)
	}
}

// end takes a stream out that ended at a time; it reports whether that changes what
// is stored. The newest stream that is left serves the agent from then on.
func (s *gapSlot) end(st *streamMarks, abnormal bool, at time.Time) bool {
	i := s.index(st.link)
	s.streams = slices.Delete(s.streams, i, i+1)
	st.link.gapLost = true
	if i < len(s.streams) {
		return false
	}
	switch {
	case !abnormal:
		s.left = nil
	case !st.taken && (s.left == nil || at.Sub(s.left.Ended) > comeback):
		g := st.marks.gap()
		g.Ended = at
		s.left = &g
	}
	if next := s.newest(); next != nil && !st.taken {
		next.taken = false
	}
	return true
}

// take returns what waits for the agent's next stream, and gives it away.
func (s *gapSlot) take(at time.Time) (g Gap, found bool) {
	newest := s.newest()
	switch {
	case s.left != nil:
		g = *s.left
	case newest == nil || newest.taken:
		return Gap{}, false
	default:
		g = newest.marks.gap()
		g.Ended = s.marked
	}
	s.takeAll(at)
	return g, true
}

// clear forgets everything, for ever: nothing that is open is marked any more.
func (s *gapSlot) clear(at time.Time) {
	s.takeAll(at)
	for _, st := range s.streams {
		st.link.gapLost = true
	}
	s.streams, s.opening, s.handed = nil, false, nil
}

// lose says that another server has the gap.
func (s *gapSlot) lose(at time.Time) {
	s.takeAll(at)
	s.opening, s.handed, s.lost = false, nil, true
}

// snapshot is what is to be stored; false for nothing.
func (s *gapSlot) snapshot() (g storedGap, ok bool) {
	switch newest := s.newest(); {
	case s.handed != nil:
		return storedGap{Gap: *s.handed, marked: s.marked}, true
	case newest != nil && !newest.taken:
		return storedGap{Gap: newest.marks.places(), marked: s.marked}, true
	case newest == nil && s.left != nil:
		return storedGap{Gap: *s.left, marked: s.marked}, true
	case s.opening, newest != nil && !s.claim.isZero():
		return storedGap{marked: s.marked}, true // the claim alone
	}
	return storedGap{}, false
}
