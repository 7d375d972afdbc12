// Package cache keeps values in memory up to a limit and drops the least
// recently used ones first.
//
// Every entry has a weight, and the weights of all entries together stay within
// the limit. The unit is the caller's: bytes, or 1 for each entry. What weighs
// more than the limit is not kept.
//
//   - [Cache] is safe for concurrent use.
//   - [Fair] is the same for entries that belong to owners, none of which drives out
//     another's share.
//   - [LRU] is the same without a lock, for an owner that holds a lock of its
//     own over several of them.
//
// Caveats: a value is shared by all who get it, so it must not be changed unless
// it has its own lock. Nothing is ever loaded or expired: an entry must be
// named by a key under which it stays true.
package cache
