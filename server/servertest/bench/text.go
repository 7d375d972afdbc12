//go:build cgo && !norocksdb

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// savedBytes is the size of a saved text: about a long paragraph.
const savedBytes = 1 << 10

// vocabulary is how many different words the texts draw from.
const vocabulary = 20_000

// functionWords are the ones that English is glued together with; they make
// up about half of any text.
var functionWords = strings.Fields("the of and to a in that is was for it with as his on be at by had not are but from or have an they which you were")

// texts makes n texts of savedBytes: every second word is a function word, the
// others follow Zipf's law, as those of natural text do. The same seed gives
// the same texts.
func texts(seed uint64, n int) []string {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable on purpose
	zipf := rand.NewZipf(rng, 1.1, 4, vocabulary-1)
	all := make([]string, n)
	for i := range all {
		var b strings.Builder
		for b.Len() < savedBytes {
			if rng.IntN(2) == 0 {
				b.WriteString(functionWords[rng.IntN(len(functionWords))])
			} else {
				b.WriteString(word(zipf.Uint64()))
			}
			b.WriteByte(' ')
		}
		all[i] = b.String()[:savedBytes]
	}
	return all
}

// word spells the n-th word: pronounceable, frequent ones shorter.
func word(n uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n += 70; n > 0; n /= 70 {
		b.WriteByte(consonants[n%14])
		b.WriteByte(vowels[n/14%5])
	}
	return b.String()
}

// query takes five words of a text.
func query(text string) string {
	words := strings.Fields(text)
	pick := func(i int) string { return words[i%len(words)] }
	return strings.Join([]string{pick(3), pick(17), pick(40), pick(71), pick(90)}, " ")
}

// agent names the agent of a client.
func agent(number int) string { return fmt.Sprintf("bench-%d", number) }
