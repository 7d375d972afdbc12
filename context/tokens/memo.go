package tokens

import "crypto/sha256"

// memoKey identifies a counted text.
type memoKey struct {
	sum      [sha256.Size]byte
	encoding Encoding
}

// memo remembers counts of texts by their SHA-256.
type memo = generations[memoKey, int]

// newMemo returns one of at least so many entries, and at most twice as many.
func newMemo(limit int) *memo {
	return newGenerations[memoKey, int](limit, func(memoKey) int { return 1 })
}
