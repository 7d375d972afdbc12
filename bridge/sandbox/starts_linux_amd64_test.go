package sandbox_test

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// startsEachRound are the starts of a round, of all tiers together; `make soak` makes 50
// rounds. briefStarts are those of -short.
const (
	startsEachRound = 2000
	briefStarts     = 400
)

// Programs start 64 at once, and none fails; no descriptor and no process stays.
func TestStartsSoak(t *testing.T) {
	starts := startsEachRound / 2
	if n, err := strconv.Atoi(os.Getenv(soakRounds)); err == nil {
		starts *= n
	} else if testing.Short() {
		starts = briefStarts / 2
	}
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		b.MustWarm() // what is made once is made
		before := descriptors(t)
		var left, failed atomic.Int64
		left.Store(int64(starts))
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					out, err := runner.Run(t.Context(), sandbox.Job{
						Scope: kv.AgentScope("default", "tester"), Argv: []string{"/bin/true"}, Root: b.root,
					}, sandbox.Streams{})
					if (err != nil || out.Exit != 0) && failed.Add(1) <= 3 {
						t.Errorf("got %+v, %v", out, err)
					}
				}
			})
		}
		all.Wait()
		t.Logf("%d starts, %d failed", starts, failed.Load())
		runner.Settle()
		if left := len(stages(t, os.Getpid())); left != 2*sandbox.DefaultWarm {
			t.Errorf("%d processes of stages are there, want %d", left, 2*sandbox.DefaultWarm)
		}
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors, were %d", after, before)
		}
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// A large server starts programs as a small one does: what starts them is no copy of it.
// Measured is the time that the kernel works for this process, which does not grow with
// what else the machine does.
func TestLargeServerStartsFast(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		measure := func() time.Duration {
			const starts = 20
			before := kernelTime(t)
			for range starts {
				b.want("true", "")
			}
			return (kernelTime(t) - before) / starts
		}
		measure()
		small := measure()
		ballast := make([]byte, 512<<20)
		for i := 0; i < len(ballast); i += os.Getpagesize() {
			ballast[i] = 1
		}
		large := measure()
		runtime.KeepAlive(ballast)
		t.Logf("%v with 512 MiB, %v without", large, small)
		if large > 2*small+4*time.Millisecond { // a copy of the page tables takes more than 10 ms
			t.Errorf("with 512 MiB a start takes %v, without %v", large, small)
		}
	})
}

func kernelTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	must(t, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Stime.Nano())
}
