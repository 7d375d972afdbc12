package share

import (
	"sync"
	"sync/atomic"
)

// Meter counts what one owner uses of a pool, and takes units from the pool in steps, so
// that counting takes a few nanoseconds. All methods are safe for concurrent use; a nil
// Meter counts nothing.
type Meter struct {
	pool  *Pool
	owner Owner
	step  int64
	kept  int64

	used, taken atomic.Int64

	mu     sync.Mutex // held while taken changes
	place  *Holding   // guarded by mu; nil while nothing is taken
	closed bool       // guarded by mu
}

// NewMeter returns a meter of an owner that uses nothing yet. It keeps up to keptSteps
// unused steps, so that use that goes up and down does not ask the pool each time; with 0
// it gives all units back when nothing is used. Close it. Without a pool it is nil.
func NewMeter(pool *Pool, o Owner, step, keptSteps int64) *Meter {
	if pool == nil {
		return nil
	}
	return &Meter{pool: pool, owner: o, step: step, kept: step * keptSteps}
}

// Add counts n units. It returns an *ExhaustedError if the owner's share is used up.
func (m *Meter) Add(n int64) error {
	if m == nil {
		return nil
	}
	if m.used.Add(n) <= m.taken.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.adjust(); err != nil {
		m.used.Add(-n)
		return err
	}
	return nil
}

// Note counts n units even if the owner's share is used up.
func (m *Meter) Note(n int64) {
	if m != nil {
		m.used.Add(n)
	}
}

// Sub counts n units out.
func (m *Meter) Sub(n int64) {
	if m == nil {
		return
	}
	used := m.used.Add(-n)
	if unused := m.taken.Load() - used; unused <= m.kept || used > 0 && unused <= m.step {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.adjust() // taking less never fails
}

// Close gives all units back to the pool. Later counting takes none.
func (m *Meter) Close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.place.Leave()
	m.place = nil
	m.taken.Store(0)
}

// adjust takes as many steps as are used, or releases unused ones. The caller holds mu.
func (m *Meter) adjust() error {
	steps := (max(m.used.Load(), 0) + m.step - 1) / m.step
	want := steps * m.step
	have := m.taken.Load()
	switch {
	case m.closed, want <= have && have-want <= m.kept:
		return nil
	case want == 0:
		m.place.Leave()
		m.place = nil
	case m.place == nil:
		place, err := m.pool.TryTake(m.owner, want)
		if err != nil {
			return err
		}
		m.place = place
	default:
		if err := m.place.Resize(want); err != nil {
			return err
		}
	}
	m.taken.Store(want)
	return nil
}
