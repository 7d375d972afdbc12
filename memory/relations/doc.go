// Package relations keeps how the records of a memory are related: edges with a name, from
// one record to another of the same memory. "Ann's diet" prefers "oat milk" is one.
//
// An edge is two keys in the keyspace of records, under either end, so that both directions
// are a scan of a prefix. One that has ended is kept under both for who asks as of an earlier
// moment, until a record has too many of those. They are staged in one commit with whatever
// else changes. That both records are there, and that one which is deleted takes its edges
// with it, is the business of package memory.
package relations
