package history_test

import (
	"fmt"
	"testing"

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
		history.Identifiers(text)
	}
}
