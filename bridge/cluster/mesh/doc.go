// Package mesh carries between the bridges of one store what may be lost: volatile
// events, wake-ups, who is attached where, and tool calls on their way to another bridge.
// What must not be lost stays in the store.
//
// The nouns:
//
//   - A [Peer] is a bridge in one of its lives: an id and an epoch.
//   - A [Transport] moves frames between bridges; it may drop them. Package natsmesh has
//     those between processes.
//   - A [Mesh] is one bridge's end: it publishes messages to all peers, asks one peer and
//     gets its answer, and knows which peers are there.
//   - A frame is a sealed part of a message. Frames of other groups and other secrets,
//     of a dead epoch, and such as came before are refused and counted.
//
// A message arrives once or never; messages of one sender under one topic arrive in order.
// A nil *Mesh is the mesh of a single bridge: it has no peers, and publishing costs
// nothing.
package mesh
