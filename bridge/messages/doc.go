// Package messages keeps the direct messages of agents.
//
//   - A [Message] goes from one agent to one other, its target, and holds only what it
//     says: nothing else of the sender crosses with it.
//   - A [Box] has the messages of all targets. [Box.Send] adds one, [Box.List] returns the
//     live ones of a target, [Box.Delete] removes them. [BoxView] reads them at one moment, as
//     a prompt does.
//
// A message is durable when Send returns, and is there once for each task id of its
// target, however often it was sent. The live ones come by priority, the highest first,
// among equals the newest first, then by task id. One whose time to live is over is never
// returned, and makes room when a box is full.
//
// A message names an agent, and may also name a node: it is in the box of each.
//
// Caveats: only [Box.Delete] and time remove a message. An id that was deleted can
// be sent again. This package announces no message; package topics has the event
// that does.
package messages
