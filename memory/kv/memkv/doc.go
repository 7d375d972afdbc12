// Package memkv is the reference engine of the kv contract: it keeps
// everything in the memory of one process and forgets it at the end.
//
// It is meant for tests and for comparing other engines with. Each keyspace is
// an immutable balanced tree, so a snapshot is one pointer and a reader never
// sees half a commit. It is written to be plainly right, not fast.
//
// Caveats: nothing survives the process, and there is no bound on memory.
package memkv
