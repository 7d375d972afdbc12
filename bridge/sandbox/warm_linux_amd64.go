package sandbox

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

const (
	// warmAge is how old a stage may become while it waits: it shows the system's files as
	// they were when it was made.
	warmAge = 30 * time.Second
	// warmTime is how long after the last job stages are kept ready.
	warmTime = 5 * time.Minute
	// warmKinds bounds the bases that stages are kept ready for. One that was not used for
	// warmIdle makes way for another one.
	warmKinds = 8
	warmIdle  = 10 * time.Second
	// readyTime bounds the making of a base.
	readyTime = 10 * time.Second
)

// pool keeps first stages that have made everything that all jobs of a base have, and wait for
// a job. They know of no job, and each gets one at most, so that nothing of one reaches
// another.
type pool struct {
	mu     sync.Mutex
	kinds  map[string]*warmKind // guarded by mu; by base
	ended  bool                 // guarded by mu
	making sync.WaitGroup       // added to under mu
	renew  *time.Timer          // guarded by mu; nil while there are no kinds
	mounts int                  // guarded by mu; a descriptor that signals changed mounts, 0 for none yet
}

// warmKind is what there is of one base. The pool's lock guards it.
type warmKind struct {
	base   inner.Spec
	helper *os.File
	most   int
	ready  []*warm // the oldest first
	making int
	used   time.Time
	round  int // counted up when what is being made must not be used
}

type warm struct {
	*process
	made time.Time
}

// begun returns a stage that was sent a job: one that was ready if there is one.
func (l *Local) begun(spec inner.Spec, helper *os.File) (*process, error) {
	if l.opts.Warm < 0 || spec.Check != nil {
		return l.start(spec, helper)
	}
	base := spec.Base()
	key, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	p := l.takeWarm(string(key), base, helper)
	defer l.fill(string(key))
	if p != nil {
		if err := p.begin(spec); err == nil {
			return p.process, nil
		}
		p.drop() // somebody has killed it
	}
	return l.start(spec, helper)
}

// Prepared is how many stages are ready for a job.
func (l *Local) Prepared() int {
	m := &l.machine.pool
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, k := range m.kinds {
		n += len(k.ready)
	}
	return n
}

// takeWarm takes a stage that is ready, and notes that its kind is in use.
func (l *Local) takeWarm(key string, base inner.Spec, helper *os.File) *warm {
	m := &l.machine.pool
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed() {
		m.flush()
	}
	k := m.kinds[key]
	if k == nil {
		if m.ended || len(m.kinds) >= warmKinds && !m.makeWay() {
			return nil
		}
		if m.kinds == nil {
			m.kinds = map[string]*warmKind{}
		}
		k = &warmKind{base: base, helper: helper, most: l.opts.Warm}
		m.kinds[key] = k
		if m.renew == nil {
			m.renew = time.AfterFunc(warmAge/2, l.tend)
		}
	}
	k.used = time.Now()
	if len(k.ready) == 0 {
		return nil
	}
	w := k.ready[0]
	k.ready = k.ready[1:]
	return w
}

// makeWay ends what waits of the kind that was not used for longest, if that is long enough.
// The caller holds mu.
func (m *pool) makeWay() bool {
	var oldest string
	for key, k := range m.kinds {
		if oldest == "" || k.used.Before(m.kinds[oldest].used) {
			oldest = key
		}
	}
	k := m.kinds[oldest]
	if time.Since(k.used) < warmIdle {
		return false
	}
	k.round++
	m.endAll(k.ready)
	delete(m.kinds, oldest)
	return true
}

// changed reports whether something was mounted or unmounted since the last call: stages that
// wait have the mounts of before. The caller holds mu.
func (m *pool) changed() bool {
	if m.mounts == 0 {
		// No os.File: the runtime would be notified in our place.
		n, err := unix.Open("/proc/self/mounts", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return true
		}
		m.mounts = n
	}
	poll := []unix.PollFd{{Fd: int32(m.mounts), Events: unix.POLLPRI}}
	n, err := unix.Poll(poll, 0)
	return err != nil || n > 0
}

// flush ends all that wait. The caller holds mu.
func (m *pool) flush() {
	for _, k := range m.kinds {
		k.round++
		m.endAll(k.ready)
		k.ready = nil
	}
}

// endAll ends stages in the background. The caller holds mu.
func (m *pool) endAll(list []*warm) {
	for _, w := range list {
		m.making.Go(w.drop)
	}
}

// fill makes stages of a kind until there are enough.
func (l *Local) fill(key string) {
	m := &l.machine.pool
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kinds[key]
	if k == nil || m.ended {
		return
	}
	for len(k.ready)+k.making < k.most {
		k.making++
		round := k.round
		m.making.Go(func() { l.makeWarm(k, round) })
	}
}

// makeWarm makes one stage. Where that fails the next job says why.
func (l *Local) makeWarm(k *warmKind, round int) {
	m := &l.machine.pool
	p, err := l.prepare(k.base, k.helper)
	if err == nil {
		_ = p.control.SetReadDeadline(time.Now().Add(readyTime)) // sockets have them
		if p.ready() {
			_ = p.control.SetReadDeadline(time.Time{})
		} else {
			p.drop()
			p = nil
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k.making--
	switch {
	case p == nil:
	case m.ended || round != k.round:
		m.endAll([]*warm{{process: p}})
	default:
		k.ready = append(k.ready, &warm{p, time.Now()})
	}
}

// tend replaces stages that are too old, and ends unused ones.
func (l *Local) tend() {
	m := &l.machine.pool
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	now := time.Now()
	for key, k := range m.kinds {
		old := slices.IndexFunc(k.ready, func(w *warm) bool { return now.Sub(w.made) < warmAge })
		if old < 0 {
			old = len(k.ready)
		}
		m.endAll(k.ready[:old])
		k.ready = slices.Clone(k.ready[old:])
		if now.Sub(k.used) < warmTime {
			m.making.Go(func() { l.fill(key) })
		} else if len(k.ready) == 0 && k.making == 0 {
			delete(m.kinds, key)
		}
	}
	m.renew = nil
	if len(m.kinds) > 0 {
		m.renew = time.AfterFunc(warmAge/2, l.tend)
	}
}

// end ends all stages that wait, and waits until they are gone.
func (m *pool) end() {
	m.mu.Lock()
	m.ended = true
	if m.renew != nil {
		m.renew.Stop()
	}
	m.flush()
	if m.mounts != 0 {
		_ = unix.Close(m.mounts) // it was only looked at
		m.mounts = 0
	}
	m.mu.Unlock()
	m.making.Wait()
}
