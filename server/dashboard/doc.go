// Package dashboard answers what the page asks that loom.v1's core serves to people, where `loom run`
// tells them to look: the same paths and the same JSON, read anew for each request from the bus, the
// directory of agents and the audit. Nothing is kept.
//
//   - Counts and rates are those of the last minute, as far as its events were stored.
//   - An event's sender is who emitted it, also where an agent of loom.v1 says it in the metadata.
//   - Of loom.v1's endpoints there are none for spans, which the server exports and does not keep, and
//     none that emits an event.
package dashboard
