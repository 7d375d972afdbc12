// Package memory is the long-term memory: records that are saved in one atomic
// write and found again by their words.
//
// The nouns:
//
//   - A [Record] is one thing remembered: a text and what is known about it.
//   - A [Store] saves, changes, finds and reads records of any number of scopes.
//     A scope (kv.Scope) is whose memory it is; nothing is read across two but
//     by a query that names both.
//   - A [Query] asks for the records that fit best, a [Filter expression]
//     narrows it, and a [Receipt] says how the answer came about.
//
// A save is one commit: the record, its names, its index entry, the statistics,
// its vector and the answer to its request id. The very next query finds it. So
// are a batch, an update and a deletion: all of it or nothing. Whoever has more
// to put into the same commit takes a [Staging].
//
// An update keeps the record as it was as an earlier version, and its place in
// the order of arrival. A record is never changed by a later one, except that
// one which is superseded learns by whom. An expired record is gone for readers
// at that very moment, and from the disk when [Store.Sweep] comes by; until then
// it still counts as a record of its scope.
//
// Caveats: an update analyzes the whole text again, whatever it changes, and so
// does a move of a sliding expiry. What is on disk is described in FORMAT.md.
//
// [Filter expression]: https://google.aip.dev/160
package memory
