package tokens

import "math/bits"

// wholeSet reports whether a piece is a token by itself, which most are. It keeps
// the bytes of short tokens in its slots, so that one comparison decides.
type wholeSet struct {
	// short has tokens of up to 7 bytes, middle tokens of up to 15: their bytes,
	// little-endian, and in the highest byte the length, so that no token is zero.
	short  []uint64
	middle [][2]uint64
	// long has the numbers of longer tokens; noToken is a free slot.
	long []token
	// The slot of a hash is its highest bits.
	shortShift, middleShift, longShift int
}

// The longest tokens of a slot, in bytes.
const (
	shortLen  = 7
	middleLen = 15
)

// Odd numbers without a pattern: multiplying by them spreads the bits of a key
// towards the highest ones.
const (
	spread1 = 0x9e3779b97f4a7c15
	spread2 = 0xd6e8feb86659fd93
)

func newWholeSet(v *vocabulary) wholeSet {
	var s wholeSet
	var sizes [3]int
	for t := range token(v.size()) {
		switch n := v.length[t]; {
		case n <= shortLen:
			sizes[0]++
		case n <= middleLen:
			sizes[1]++
		default:
			sizes[2]++
		}
	}
	s.short, s.shortShift = make([]uint64, slots(sizes[0])), shiftOf(slots(sizes[0]))
	s.middle, s.middleShift = make([][2]uint64, slots(sizes[1])), shiftOf(slots(sizes[1]))
	s.long, s.longShift = make([]token, slots(sizes[2])), shiftOf(slots(sizes[2]))
	for i := range s.long {
		s.long[i] = noToken
	}
	for t := range token(v.size()) {
		s.add(t, v.bytes(t))
	}
	return s
}

// slots is a power of two, so that about half of the slots stay free.
func slots(entries int) int { return 1 << bits.Len(uint(entries*3/2)) }

func shiftOf(slots int) int { return 64 - bits.TrailingZeros(uint(slots)) }

func (s *wholeSet) add(t token, text []byte) {
	piece := string(text)
	switch n := len(piece); {
	case n <= shortLen:
		key := word(piece, 0, n) | uint64(n)<<56
		i := key * spread1 >> s.shortShift
		for s.short[i] != 0 {
			i = (i + 1) & uint64(len(s.short)-1)
		}
		s.short[i] = key
	case n <= middleLen:
		key := middleKey(piece, 0, n)
		i := middleHash(key) >> s.middleShift
		for s.middle[i][1] != 0 {
			i = (i + 1) & uint64(len(s.middle)-1)
		}
		s.middle[i] = key
	default:
		i := longHash(piece) >> s.longShift
		for s.long[i] != noToken {
			i = (i + 1) & uint64(len(s.long)-1)
		}
		s.long[i] = t
	}
}

// has reports whether text[at:end] is a token.
func (v *vocabulary) has(text string, at, end int) bool {
	s := &v.whole
	switch n := end - at; {
	case n <= shortLen:
		key := word(text, at, n) | uint64(n)<<56
		for i := key * spread1 >> s.shortShift; s.short[i] != 0; i = (i + 1) & uint64(len(s.short)-1) {
			if s.short[i] == key {
				return true
			}
		}
	case n <= middleLen:
		key := middleKey(text, at, n)
		for i := middleHash(key) >> s.middleShift; s.middle[i][1] != 0; i = (i + 1) & uint64(len(s.middle)-1) {
			if s.middle[i] == key {
				return true
			}
		}
	case n <= maxTokenLen:
		piece := text[at:end]
		for i := longHash(piece) >> s.longShift; s.long[i] != noToken; i = (i + 1) & uint64(len(s.long)-1) {
			if string(v.bytes(s.long[i])) == piece {
				return true
			}
		}
	}
	return false
}

// word returns up to 8 bytes of a text, little-endian.
func word(text string, at, n int) uint64 {
	if at+8 <= len(text) {
		return word8(text[at:at+8]) & (1<<(8*n) - 1)
	}
	var w uint64
	for i := range n {
		w |= uint64(text[at+i]) << (8 * i)
	}
	return w
}

func word8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// middleKey is for 8 to 15 bytes.
func middleKey(text string, at, n int) [2]uint64 {
	return [2]uint64{word8(text[at : at+8]), word(text, at+8, n-8) | uint64(n)<<56}
}

func middleHash(key [2]uint64) uint64 { return (key[0]*spread1 ^ key[1]) * spread2 }

func longHash(piece string) uint64 {
	h := uint64(len(piece))
	for ; len(piece) >= 8; piece = piece[8:] {
		h = (h ^ word8(piece)) * spread1
		h ^= h >> 32
	}
	return (h ^ word(piece, 0, len(piece))) * spread2
}
