// Package mark keeps the file LOOM-MARK of a store: how long its manifest and each
// of its logs were when they were last known to be on disk. Whoever opens the store
// and finds less knows that something was lost. The layout is in memory/FORMAT.md.
//
// The nouns:
//
//   - A [Mark] is the part of the store known to be on disk.
//   - A slot is a place in the file for one mark. Two slots take turns and are
//     synced, so that one of them is whole whatever happens. A third one is written
//     far more often and not synced: it survives the death of the process.
//   - A [Writer] writes to the slots.
//
// Caveats: a mark must never say more than what is on disk, or a loss of power
// makes a good store look damaged. That is its caller's care.
package mark
