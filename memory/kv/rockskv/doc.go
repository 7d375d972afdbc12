// Package rockskv is the engine of the kv contract that keeps data: one
// RocksDB in one directory, a column family for each keyspace.
//
// The nouns:
//
//   - A [DB] is an open store. Only one process at a time has it open.
//   - A join is the set of commits that waited while the one before was on its
//     way to disk. It becomes one RocksDB batch and one sync.
//   - The marker is the text file LOOM-FORMAT in the directory. It says that
//     the directory is a store of ours and in which format.
//   - The mark is the file LOOM-MARK: how much of the logs and the manifest is
//     known to be on disk. A store that has less is damaged and not opened.
//   - [Durability] says what is true when a commit returns.
//
// Caveats: a commit that waits holds its caller's goroutine and memory; there
// is no other queue, and no other limit on it. A loop over a Scan that calls
// Close on the same DB waits for itself. After a write whose outcome is
// unknown the store reads on but takes no more commits ([kv.ErrFailed]) until it
// is opened again.
//
// The build tag norocksdb, or cgo switched off, puts a stub in this package's
// place whose Open says how to get the real one.
package rockskv
