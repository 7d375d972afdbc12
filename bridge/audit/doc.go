// Package audit keeps a record of every tool call: who called what, with which
// arguments, under which profile and approval, and what came of it.
//
// The nouns:
//
//   - A [Record] is one call. Its arguments are reduced, bounded, and without secrets
//     ([Safe]). It is staged in the commit that records the call's step, so that there is
//     never one without the other.
//   - An epoch is one run of a server, counted for each tenant. Records have a number in it.
//   - A link seals the records of a span of numbers: it holds a digest of each, and the
//     digest of the link before it. The last link's digest is the head. [Log] writes links
//     as records come, and the head to the logger at each rotation and when it is closed.
//   - [Verify] compares records, links and the heads of a server's log.
//
// Promises: an acknowledged call has its record. Once a record is sealed, its change or
// loss is detected; records cut from the end are detected with the logged heads. Deleting
// old records, or an agent's records, leaves their digests, and is itself a link.
//
// Caveats: a record is sealed within SealEvery of its commit; a change on the disk of a
// killed server before its next start is not detected. Only one process at a time may open
// the store.
package audit
