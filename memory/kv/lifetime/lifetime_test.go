package lifetime_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

// record notes the names of entries in the order in which they end.
type record struct {
	mu    sync.Mutex
	ended []string // guarded by mu
}

func (r *record) end(name string) func() {
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, name)
	}
}

func (r *record) want(tb testing.TB, names ...string) {
	tb.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.ended, names) {
		tb.Errorf("ended %v, want %v", r.ended, names)
	}
}

func TestEntriesEndAtTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifetime.Holdings
		var r record
		var a, b, c, early, removed lifetime.Holding
		start := time.Now()
		l.Add(&a, time.Now(), start.Add(5*time.Second), r.end("a"))
		time.Sleep(time.Second)
		l.Add(&b, time.Now(), start.Add(6*time.Second), r.end("b"))
		l.Add(&removed, time.Now(), start.Add(6*time.Second), r.end("removed"))
		l.Add(&early, time.Now(), start.Add(2*time.Second), r.end("early"))
		l.Remove(&removed)
		l.Remove(&removed)
		time.Sleep(time.Second)
		r.want(t, "early")
		time.Sleep(3 * time.Second)
		r.want(t, "early", "a")
		time.Sleep(time.Second)
		r.want(t, "early", "a", "b")
		// The list has been empty, and its timer is gone.
		l.Add(&c, time.Now(), time.Now().Add(time.Minute), r.end("c"))
		time.Sleep(time.Minute)
		r.want(t, "early", "a", "b", "c")
		l.Remove(&c)
		if l.Len() != 0 {
			t.Errorf("%d entries are left, want none", l.Len())
		}
	})
}

func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lifetime.Holdings
		var r record
		var a, b, late lifetime.Holding
		l.Add(&a, time.Now(), time.Now().Add(time.Second), r.end("a"))
		l.Add(&b, time.Now(), time.Now().Add(time.Minute), r.end("b"))
		l.Close()
		l.Add(&late, time.Now(), time.Now().Add(time.Second), r.end("late"))
		time.Sleep(time.Hour)
		r.want(t, "a", "b")
		l.Remove(&late)
		new(lifetime.Holdings).Close()
	})
}
