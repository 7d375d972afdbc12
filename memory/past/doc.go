// Package past finds what a memory held, or what was true, at an earlier moment.
//
// A [Moment] has two times: AsOf, what the memory held by the server's clock, and ValidAt,
// what was true by the times in the records. [Moment.Find] reads the records of a
// scope that have changed or were replaced since, and says which documents of the index
// don't stand for what counted then, and which earlier versions do. [Index] makes an index
// of those versions, in memory, which is searched along with the scope's own.
//
// Caveats: records deleted or expired since are gone. The work is bounded: more than
// MaxReread changed or replaced records are refused.
package past
