// Package bitset has sets of small numbers, one bit for each: documents by their
// ordinals or their slots.
//
// A [Set] has a fixed size, the largest number given to [New] or [Set.Reset].
// Numbers beyond it cannot be added, and methods that combine two sets expect sets
// of the same size unless they say otherwise. A Set is not safe for concurrent
// use while it is changed.
package bitset
