// Package kv is the ordered key-value contract that everything durable in
// Loom Bridge stands on, and the writer that shares one engine among many
// callers.
//
// The nouns:
//
//   - A [Keyspace] is one nature of data: records, index, log, blobs, events,
//     system. An engine keeps keyspaces apart (a column family in RocksDB).
//   - A [Scope] is whose data it is: (tenant, owner kind, owner id). Every key
//     of every keyspace begins with the bytes of exactly one scope.
//   - A [Ref] is one scope in one keyspace. Each ref has a sequence, which
//     starts at zero and goes up by one with every commit that guards it
//     exactly.
//   - A [Guard] says which sequence a commit expects a ref to have, or that the
//     commit is blind there: it puts keys without having read any, and the
//     sequence stays. So blind writes, however many, make no other commit fail.
//   - An [Engine] stores pairs: it reads, takes snapshots and commits a batch
//     under guards, all or nothing. A [Snapshot] lives for a bounded time: [View]
//     is for what is shorter, [LongReader] for what may not be.
//   - A [Writer] runs staging functions for many callers, lets calls that wait
//     for the same refs share one commit, and repeats them on a conflict.
//
// The contract holds nothing that is RocksDB's own: no merge operators and no
// range deletion inside a commit, so that a shared, distributed engine can
// stand behind it. Nothing above it may rely on being the only process.
//
// Caveats: the bytes an engine hands out are copies that belong to the caller;
// the bytes handed to a [Batch] belong to the batch until the commit returns.
// A key whose first byte after the scope is zero is reserved for the engine,
// which keeps the ref's sequence there.
package kv
