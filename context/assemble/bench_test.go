package assemble_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// worked is a session of n steps whose prompts were asked for now and then.
func worked(b *testing.B, n int) *world {
	b.Helper()
	w := newWorld(b)
	w.say(text(session.User, "Find all handlers."))
	for i := range n {
		w.work(i)
		if i%20 == 0 {
			w.prompt()
		}
	}
	w.prompt()
	return w
}

// timed reports how long calls took.
func timed(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "p95-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkWarm assembles a session of many steps again and again, with a
// budget of 32,000 tokens.
func BenchmarkWarm(b *testing.B) {
	for _, n := range []int{50, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := worked(b, n)
			var took []time.Duration
			size := 0
			for b.Loop() {
				start := time.Now()
				size = len(w.prompt().OpenAIChatJSON)
				took = append(took, time.Since(start))
			}
			timed(b, took)
			b.ReportMetric(float64(size), "bytes/prompt")
		})
	}
}

// BenchmarkEveryStep assembles after every step: batches are among them, and once
// in a while one that makes older folds denser.
func BenchmarkEveryStep(b *testing.B) {
	for _, n := range []int{50, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := worked(b, n)
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				n++
				w.work(n)
				b.StartTimer()
				start := time.Now()
				w.prompt()
				took = append(took, time.Since(start))
			}
			timed(b, took)
		})
	}
}

// BenchmarkCold assembles a session for the first time since the process
// started: nothing is counted yet, and nothing was folded.
func BenchmarkCold(b *testing.B) {
	for _, n := range []int{50, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b)
			for i := range n {
				w.work(i)
			}
			w.request.DryRun = true
			for b.Loop() {
				b.StopTimer()
				w.assembler = assemble.New(w.log, MustCounter(b), nil)
				b.StartTimer()
				w.prompt()
			}
		})
	}
}
