// Package past finds what a memory held, or what was true, at an earlier moment.
//
// A [Moment] has two times: AsOf, what the memory held by the server's clock, and ValidAt,
// what was true by the times in the records. [Moment.Find] reads the records of a
// scope that have changed or were replaced since, and says which documents of the index
// don't stand for what counted then, and which earlier versions do. [Index] makes an index
// of those versions, in memory, that is searched beside the scope's own.
//
// Caveats: what was deleted or has expired since is gone. The work is bounded by the
// records that have changed or were replaced, MaxReread of them; more are refused.
package past
