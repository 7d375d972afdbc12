// Package memory is the long-term memory: records that are saved in one atomic write
// and found again by words, meaning, neighbours and time.
//
//   - A [Store] saves, changes, finds and reads records (memory/record) of any number
//     of scopes. Nothing is read across two but by a query that names both.
//   - A question (memory/question), narrowed by a filter (memory/filter), gets an
//     [Answer]: its hits and a [Receipt] that says how they came about. Within a number
//     of tokens long texts give passages (memory/passage).
//   - A [Staging] puts a change into a commit of the caller's.
//
// A save, a batch, an update and a deletion are one commit each, with all that belongs
// to them, and the next query sees it. An update keeps what was as an earlier version
// and analyses the whole text again, as a move of a sliding expiry does. An expired
// record is gone for readers at once, and from the disk after [Store.Sweep]; until
// then it counts as a record of its scope. FORMAT.md is the layout on disk.
package memory
