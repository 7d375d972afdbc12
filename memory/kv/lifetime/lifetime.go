// Package lifetime ends what an engine holds for its readers once it is too old.
//
// A [Holdings] has a [Holding] for each snapshot and each scan that is open. One timer
// serves all of them, so a holding costs a few pointers and no goroutine.
//
// Caveats: a holding is ended while its reader may use it, on the timer's own
// goroutine. end must be safe while the reader runs and must not wait for it, since the
// next holding ends only after it returns.
package lifetime

import (
	"sync"
	"time"
)

// Holdings holds the open holdings, in the order in which they end. All methods are safe for
// concurrent use.
type Holdings struct {
	ending sync.Mutex // held while ends run, so that Close waits for them

	mu     sync.Mutex // guards what follows, and the links of the holdings
	root   Holding    // of a ring: root.next ends first
	fires  time.Time  // when the timer fires; zero: it does not
	closed bool
}

// Holding is one thing that is open. The zero value is in no list.
type Holding struct {
	until      time.Time
	end        func()
	prev, next *Holding // guarded by the list's mu; nil in no list
}

// Until is when the holding ends.
func (e *Holding) Until() time.Time { return e.until }

// Add puts a holding into the list at the time now, which calls end once at the time
// until, or not at all if the holding is removed before. A caller who does not know the
// time passes the zero one. After Close Add does nothing.
func (l *Holdings) Add(e *Holding, now, until time.Time, end func()) {
	e.until, e.end = until, end
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.root.next == nil {
		l.root.prev, l.root.next = &l.root, &l.root
	}
	before := l.root.prev // nearly always: a later holding ends later
	for before != &l.root && before.until.After(until) {
		before = before.prev
	}
	e.prev, e.next = before, before.next
	e.prev.next, e.next.prev = e, e
	l.arm(now)
}

// arm starts the timer unless one runs that fires in time. It is never stopped: one
// that finds nothing to do ends itself. One that has not fired at its time is lost,
// with a bubble of testing/synctest. The caller holds mu.
func (l *Holdings) arm(now time.Time) {
	first := l.root.next.until
	if !l.fires.IsZero() && now.Before(l.fires) && !first.Before(l.fires) {
		return
	}
	l.fires = first
	time.AfterFunc(time.Until(first), l.run)
}

// run ends what is due.
func (l *Holdings) run() {
	l.ending.Lock()
	defer l.ending.Unlock()
	l.mu.Lock()
	var due []*Holding
	now := time.Now()
	for !l.empty() && !now.Before(l.root.next.until) {
		e := l.root.next
		e.unlink()
		due = append(due, e)
	}
	l.fires = time.Time{}
	if !l.empty() {
		l.arm(now)
	}
	l.mu.Unlock()
	for _, e := range due {
		e.end()
	}
}

// empty reports whether there are no holdings. The caller holds mu.
func (l *Holdings) empty() bool { return l.root.next == nil || l.root.next == &l.root }

// Remove takes a holding out of the list. One that is in none, because its time was
// over or it was removed before, stays as it is.
func (l *Holdings) Remove(e *Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.next != nil {
		e.unlink()
	}
}

func (e *Holding) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
}

// Len is how many holdings there are.
func (l *Holdings) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for e := l.root.next; e != nil && e != &l.root; e = e.next {
		n++
	}
	return n
}

// Close ends all holdings and waits for the ends that run.
func (l *Holdings) Close() {
	l.ending.Lock()
	defer l.ending.Unlock()
	l.mu.Lock()
	l.closed = true
	var all []*Holding
	for !l.empty() {
		e := l.root.next
		e.unlink()
		all = append(all, e)
	}
	l.mu.Unlock()
	for _, e := range all {
		e.end()
	}
}
