// Package memory is the long-term memory: records that are saved in one atomic
// write and found again by their words.
//
// The nouns:
//
//   - A [Record] is one thing remembered: a text and what is known about it.
//   - A [Store] saves, finds and reads records of any number of scopes. A scope
//     (kv.Scope) is whose memory it is; nothing is ever read across two.
//   - A [Query] asks for the records that fit best, a [Filter expression]
//     narrows it, and a [Receipt] says how the answer came about.
//
// A save is one commit: the record, its names, its index entry, the statistics
// and the answer to its request id. The very next query finds it.
//
// A record is never changed by a later one, except that a record which is
// superseded learns by whom. An expired record is gone for readers at that
// very moment. Both still count as records of their scope, and their words
// still count in its statistics, until they are swept from the disk.
//
// Caveats: the package does no vector search yet; a query that allows vectors
// says in its receipt that it made do with words. What is on disk is described
// in FORMAT.md.
//
// [Filter expression]: https://google.aip.dev/160
package memory
