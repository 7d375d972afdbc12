// Package peers joins the bus, the directory of agents and the children of a bridge with
// the other bridges' on the store, over a mesh.
//
// Volatile events are sent to all peers, and wake-ups for durable ones. Each bridge
// announces its agents: a change at once, and all of them to a peer that asks, which it
// does when it comes, and when a number is missing in what it heard. A tool call, an event
// for one stream, and the taking of a gap go to the bridge that the agent is at, and a call
// that touches a workspace to the one that has it.
//
// Caveat: what a peer has not heard yet it does not know. An agent can be called from
// another bridge some milliseconds after it was attached.
package peers
