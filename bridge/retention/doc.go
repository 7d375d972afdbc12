// Package retention deletes what has become too old: memory records, and sessions with
// their steps.
//
// A [Sweeper] looks from time to time, and works in small commits, each complete in itself:
// one that was interrupted goes on with the next look. Of the servers on one store one
// sweeps a tenant, under a lease; the others leave it to that one.
//
// What stays whatever its age: pinned records, records that wait for review, and sessions
// that are in use. Calls' audit records have their own retention (bridge/audit), and
// so have events.
package retention
