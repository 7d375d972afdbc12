package lexical

import (
	"iter"
	"math/bits"
)

// newBitset returns an empty set for numbers up to last.
func newBitset(last uint32) bitset { return make(bitset, int(last)/64+1) }

func (s bitset) clear(i uint32) { s[i/64] &^= 1 << (i % 64) }

// complement turns the set into the numbers from 1 to last that are not in it.
func (s bitset) complement(last uint32) {
	for i := range s {
		s[i] = ^s[i]
	}
	s[0] &^= 1
	s[last/64] &= 1<<(last%64+1) - 1
}

// and leaves what is in both sets.
func (s bitset) and(other bitset) {
	for i := range s {
		s[i] &= other[i]
	}
}

// or adds another set.
func (s bitset) or(other bitset) {
	for i := range s {
		s[i] |= other[i]
	}
}

// andNot takes another set away, which may be shorter.
func (s bitset) andNot(other bitset) {
	for i := range min(len(s), len(other)) {
		s[i] &^= other[i]
	}
}

func (s bitset) empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// all yields the set, ascending.
func (s bitset) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
