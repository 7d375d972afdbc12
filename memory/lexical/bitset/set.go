package bitset

import (
	"iter"
	"math/bits"
)

// New returns an empty set for numbers up to last.
func New(last uint32) Set { return make(Set, int(last)/64+1) }

// Remove takes a number out.
func (s Set) Remove(i uint32) { s[i/64] &^= 1 << (i % 64) }

// Complement converts the set into the numbers from 1 to last that are not in it.
func (s Set) Complement(last uint32) {
	for i := range s {
		s[i] = ^s[i]
	}
	s[0] &^= 1
	s[last/64] &= 1<<(last%64+1) - 1
}

// And leaves what is in both sets.
func (s Set) And(other Set) {
	for i := range s {
		s[i] &= other[i]
	}
}

// Or adds another set.
func (s Set) Or(other Set) {
	for i := range s {
		s[i] |= other[i]
	}
}

// AndNot takes another set away, which may be shorter.
func (s Set) AndNot(other Set) {
	for i := range min(len(s), len(other)) {
		s[i] &^= other[i]
	}
}

// Empty reports whether nothing is in the set.
func (s Set) Empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// All yields the set, ascending.
func (s Set) All() iter.Seq[uint32] {
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

// Set is a set of ordinals or slots.
type Set []uint64

// Reset makes it an empty set for numbers below n.
func (s *Set) Reset(n int) {
	words := (n + 63) / 64
	if cap(*s) < words {
		*s = make(Set, words)
		return
	}
	*s = (*s)[:words]
	clear(*s)
}

// Add puts a number into the set.
func (s Set) Add(i uint32) { s[i/64] |= 1 << (i % 64) }

// Has reports whether a number is in the set, which must be within its size.
func (s Set) Has(i uint32) bool { return s[i/64]&(1<<(i%64)) != 0 }

// Contains is has for any number, whatever the size of the set.
func (s Set) Contains(i uint32) bool { return int(i/64) < len(s) && s.Has(i) }

// CountRange is how many numbers from first to last are in the set.
func (s Set) CountRange(first, last uint32) (n uint64) {
	for i := first; i <= last && int(i/64) < len(s); {
		if i%64 == 0 && last-i >= 63 {
			n += uint64(bits.OnesCount64(s[i/64]))
			i += 64
			continue
		}
		if s.Has(i) {
			n++
		}
		i++
	}
	return n
}

// Count is how many ordinals are in the set.
func (s Set) Count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
