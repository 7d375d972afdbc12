// Package paths counts what a call of the server takes: CPU, allocations, and round trips
// to the store.
//
//   - A [Store] is an engine that counts how it is read and written.
//   - A [Meter] measures calls, and returns the [Figures] of a path: medians of its
//     calls, so that background work during one of them does not count.
//   - A [Book] has the figures of all paths by name. [Book.Over] compares the counts
//     with a book before.
//
// CPU is that of the whole process, client and server, in units of a fixed piece of work
// that is measured between the calls. It still doubles under other load, so it is for
// people. What is counted hardly varies, so a run may fail for it: the collector is off
// while calls are measured, since what it leaves in pools is not allocated again.
package paths
