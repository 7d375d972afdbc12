// Package dashboard answers what the page asks that loom.v1's core serves to people, where `loom run`
// tells them to look: the same paths and the same JSON, read anew for each request from the bus, the
// directory of agents and the audit.
//
//   - Counts and rates are those of the last minute, as far as its events were stored.
//   - An event's sender is who emitted it, also where an agent of loom.v1 says it in the metadata.
//   - The last 1,000 spans of calls are kept, each seen by its tenant alone, with marks in place of
//     secrets and texts of at most 1,000 characters. Calls that a caller's own trace leaves out are not
//     among them.
//   - An event is emitted only where LOOM_DASHBOARD_DEBUG is true, by the rules of Emit.
package dashboard
