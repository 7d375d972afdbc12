// Package store keeps the durable events of topics in an ordered key-value store.
//
// An [Event] is one thing that happened. Each topic has its own scope in the
// keyspace of events and a [Record] of how far it has come: [Stage] appends to it and
// gives sequences from 1 without gaps, [Page] reads, [Sweep] deletes the oldest, and
// [Check] reads a whole topic back. A topic's sequences outlive its events.
//
// What is large stands next to its event: a payload, or the event cut into parts.
// memory/FORMAT.md has the layout.
package store
