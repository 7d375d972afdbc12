package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/history"
)

// The view of a session of many steps with a budget of 32,000 tokens, as a
// caller asks for it that leaves folded entries out: warm, so that nothing is
// folded.
func BenchmarkView(b *testing.B) {
	for _, steps := range []int{50, 1000, 10_000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			s := session{tb: b, ledger: history.New(count, nil), budget: 32_000}
			for i := range steps {
				s.step(fmt.Sprintf("cat file_%d", i), listing(fmt.Sprintf("part_%d", i), 8))
				if i%20 == 0 {
					s.view()
				}
			}
			s.view()
			h := s.history()
			live := history.Live(s.folds)
			h.Folds = live
			h.Entries = s.entries[live[len(live)-1].Spans[0].Last:]
			for b.Loop() {
				MustCompact(b, s.ledger, h)
			}
		})
	}
}

// A history of a megabyte and more is folded in one batch.
func BenchmarkBatch(b *testing.B) {
	s := session{tb: b, ledger: history.New(count, nil), budget: 32_000}
	size := 0
	for i := range 4000 {
		out := listing(fmt.Sprintf("part_%d", i), 10)
		s.step(fmt.Sprintf("cat file_%d", i), out)
		size += len(out)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		MustCompact(b, s.ledger, s.history())
	}
}

func BenchmarkIdentifiers(b *testing.B) {
	text := listing("part", 5000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		excerpt.Identifiers(text)
	}
}

// A session goes on for thousands of steps, its batches and dense folds
// included, as a caller asks for it that leaves folded entries out: time for
// each step, and the longest call of all.
func BenchmarkSession(b *testing.B) {
	for _, steps := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			worst := time.Duration(0)
			for b.Loop() {
				s := session{tb: b, ledger: history.New(count, nil), budget: 32_000}
				var last history.Fold
				for i := range steps {
					s.step(fmt.Sprintf("cat file_%d", i), listing(fmt.Sprintf("part_%d", i), 10))
					h := s.history()
					h.Batch, h.Through = last.Batch, last.Through
					began := time.Now()
					v := MustCompact(b, s.ledger, h)
					worst = max(worst, time.Since(began))
					s.folds = history.Live(append(s.folds, v.Made...))
					for _, f := range v.Made {
						last = f
					}
					for len(v.Made) > 0 && s.entries[0].Position <= s.folds[len(s.folds)-1].Spans[0].Last {
						s.entries = s.entries[1:]
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps), "µs/step")
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
		})
	}
}

// A batch of one step in a session with a message of the user between any two
// steps.
func BenchmarkAlternating(b *testing.B) {
	for _, turns := range []int{200, 800} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			s := alternating(b, turns)
			s.batch()
			s.step("ls", listing("new", 60))
			s.step("ls", "x")
			s.step("ls", "x")
			h := s.history()
			h.Now = true
			for b.Loop() {
				MustCompact(b, s.ledger, h)
			}
		})
	}
}

// The view of a session with a result of a megabyte, which is cut.
func BenchmarkLongResult(b *testing.B) {
	s := session{tb: b, ledger: history.New(count, nil)}
	s.step("find", listing("x", 11_000))
	for b.Loop() {
		s.view()
	}
}
