// Package frame holds in memory what ranking and filters need of the documents of
// a scope, in addition to their terms: lengths, sessions, times, neighbours, sums.
//
// A [Frame] is one state of a scope. It has a column for each property, indexed by
// slot. Slots number the documents from 1 in the order of their ordinals; those
// that were deleted before the frame was laid out have none. A [Builder] makes the
// frame of a newer state from the one before, at the cost of what is new.
//
// Caveats: a frame never changes and is safe for concurrent use; frames of one
// builder share memory, so their columns must not be written to. A slot of a deleted
// document keeps its columns or has zeros: ask Deleted first.
package frame
