package similar_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/similar"
)

var texts = []string{
	"The desk in Berlin closes at 17:30, and Ann doesn't really like that; she would prefer 18:00 on Fridays.",
	"w123 w4211 w99 w4000 w12 w13 w15 w444 w2311 w3121 w4999 w1200 w1500 w2700 w88 w77 w66 w55 w44 w33",
}

func BenchmarkOf(b *testing.B) {
	for b.Loop() {
		for _, text := range texts {
			similar.Of(text).Sum("fact", "", "", "", "")
		}
	}
}
