package unread

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// One goroutine watches for all that wait, however they come and go, and none where nobody
// waits.
func TestOneWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(share.New(share.Options{Name: "x", Total: 1 << 20}), 1<<20, 800*time.Millisecond, time.Now)
		before := runtime.NumGoroutine()
		for range 1000 {
			r.wait()
			r.waited()
		}
		r.wait()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		r.mu.Lock()
		if !r.watched || r.waiters != 1 {
			t.Errorf("watched %v for %d who wait", r.watched, r.waiters)
		}
		r.mu.Unlock()
		if n := runtime.NumGoroutine() - before; n > 1 {
			t.Logf("%d goroutines more, of other tests, too", n)
		}
		r.waited()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.watched {
			t.Error("somebody watches for nobody")
		}
	})
}
