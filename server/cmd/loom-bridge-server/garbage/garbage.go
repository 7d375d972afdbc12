// Package garbage has the server collect its garbage often while it has little to do, for little
// memory, and seldom while it has much.
package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// restPercent is how much the heap of a server grows that has little to do: half of Go's
	// default saves some fifty megabytes.
	restPercent = 50
	// busyPercent is the most that of a busy one grows, and busyBytes about how much garbage
	// it may hold, unless half of the heap is more: a heap of 14 MB was collected 25 times a
	// second, which took a fifth of the time.
	busyPercent = 400
	busyBytes   = 32 << 20
	// busyWithin and busyCycles say what is busy: what fills its room in a shorter time, so
	// many times one after the other.
	busyWithin = 500 * time.Millisecond
	busyCycles = 4
)

// Collect adjusts from now on, after each collection, how much the heap grows until the next.
func Collect() {
	debug.SetGCPercent(restPercent)
	after(&cycle{percent: restPercent, ended: time.Now()})
}

// cycle is one collection. Nothing refers to it, so the next one finds it.
type cycle struct {
	percent int
	ended   time.Time
	quick   int // how many came soon, one after the other
}

func after(last *cycle) {
	runtime.SetFinalizer(last, func(last *cycle) {
		now := &cycle{ended: time.Now()}
		if now.ended.Sub(last.ended) < busyWithin {
			now.quick = last.quick + 1
		}
		if now.percent = percentFor(now.quick, live()); now.percent != last.percent {
			debug.SetGCPercent(now.percent) // it stops all for a moment
		}
		after(now)
	})
}

// percentFor is how much a heap of so many bytes may grow, of which so many collections came
// soon after the ones before.
func percentFor(quick int, live uint64) int {
	if quick < busyCycles || live == 0 {
		return restPercent
	}
	const step = 25 // so that it seldom changes
	return max(restPercent, min(int(100*busyBytes/live)/step*step, busyPercent))
}

// live is what the last collection left.
func live() uint64 {
	found := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(found)
	if found[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return found[0].Value.Uint64()
}
