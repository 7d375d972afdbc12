package tokens

// pieceCache remembers how many tokens the last pieces had that are no tokens
// themselves: names in code come again and again. A newer piece takes the place
// of an older one with the same slot. It is for one goroutine at a time.
type pieceCache struct {
	slots []pieceSlot
}

// pieceSlot holds the bytes of a piece, its length in the byte after them and
// its tokens in the last byte.
type pieceSlot [2]uint64

// The size of the cache.
const (
	// pieceBits makes 65,536 slots of 16 bytes: 1 MiB for each vocabulary and
	// each text that is counted at a time.
	pieceBits = 16
	// maxCachedLen is what a slot has room for, in bytes.
	maxCachedLen = 14
	tokensShift  = 56
)

// slot returns the key of text[at:end] and the slot it belongs in.
func (c *pieceCache) slot(text string, at, end int) (pieceSlot, *pieceSlot) {
	var key pieceSlot
	if n := end - at; n <= 8 {
		key = pieceSlot{word(text, at, n), uint64(n) << 48}
	} else {
		key = pieceSlot{word8(text[at : at+8]), word(text, at+8, n-8) | uint64(n)<<48}
	}
	hash := (key[0]*spread1 ^ key[1]) * spread2
	return key, &c.slots[hash>>(64-pieceBits)]
}

// count returns the tokens of a piece that was put here, or 0.
func (s *pieceSlot) count(key pieceSlot) int {
	if s[0] == key[0] && s[1]&(1<<tokensShift-1) == key[1] {
		return int(s[1] >> tokensShift)
	}
	return 0
}

func (s *pieceSlot) put(key pieceSlot, tokens int) {
	*s = pieceSlot{key[0], key[1] | uint64(tokens)<<tokensShift}
}
