// Package access counts how often records are read, so that those in use can rank higher.
//
//   - A [Value] describes a record's accesses: how many there were, and their
//     heat, of which half is gone after [HalfLife].
//   - A [Recorder] notes accesses in memory and writes them from time to time.
//
// Caveats: counts are no truth. What was not written when a process is killed is lost, and
// so is what comes while too much waits; of two processes on one store both are counted.
package access
