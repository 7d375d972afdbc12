package tokens

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// However many ask at once, only as many texts are counted as there are
// processors: each takes much memory while it is.
func TestCountsAtOnceAreBounded(t *testing.T) {
	if _, err := loadO200K(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := New(nil)
		if err != nil {
			t.Fatal(err)
		}
		var running atomic.Int32
		gate := make(chan struct{})
		for range runtime.GOMAXPROCS(0) + 8 {
			go func() {
				_, _ = c.measure(memoKey{encoding: O200K}, "text", func(*engine) measured {
					running.Add(1)
					<-gate
					return measured{}
				})
			}()
		}
		synctest.Wait()
		if got := int(running.Load()); got != runtime.GOMAXPROCS(0) {
			t.Errorf("%d texts are counted at once", got)
		}
		close(gate)
	})
}
