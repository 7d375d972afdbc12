// Package lease lets several processes on one store share out its background work.
//
// A lease is a key with a holder, an epoch and a time at which it runs out, taken by
// compare-and-set under an exact guard. A Holder takes leases for one process, renews
// them while work runs under them, and ends the work's context when one is lost.
//
// Two holders may both believe for a moment that a lease is theirs: clocks differ by
// more than MaxSkew, or a process was stopped. What must not happen twice is fenced
// (Fence): a commit of a former holder is refused. On a store that one process has for
// itself every lease is free and nothing is written.
package lease
