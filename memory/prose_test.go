package memory_test

import (
	"math/rand/v2"
	"strings"
)

// prose writes text whose words are as unevenly common as those of a language.
type prose struct {
	rng  *rand.Rand
	zipf *rand.Zipf
}

func newProse(seed uint64) *prose {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &prose{rng, rand.NewZipf(rng, 1.1, 10, 20_000)}
}

func (p *prose) word() string {
	const consonants, vowels = "bcdfghklmnprstvw", "aeiou"
	n := p.zipf.Uint64() + 1
	var b strings.Builder
	for ; n > 0; n /= 80 {
		b.WriteByte(consonants[n%16])
		b.WriteByte(vowels[n/16%5])
	}
	b.WriteString("x")
	return b.String()
}

func (p *prose) text(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(p.word())
		if p.rng.IntN(3) == 0 {
			b.WriteString(" of the")
		}
		b.WriteByte(' ')
	}
	return b.String()[:size]
}
