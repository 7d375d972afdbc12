package tokens

import "crypto/sha256"

// memoKey identifies a cached answer about a text: its count, or its ends.
type memoKey struct {
	sum        [sha256.Size]byte
	encoding   Encoding
	ends       bool
	head, tail int
}

// measured is the answer: a count, or two places in the text.
type measured struct {
	first, second int
}

// memo remembers answers about texts by their SHA-256.
type memo = generations[memoKey, measured]

// newMemo returns one of at least so many entries, and at most twice as many.
func newMemo(limit int) *memo {
	return newGenerations[memoKey, measured](limit, func(memoKey) int { return 1 })
}
