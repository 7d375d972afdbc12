// Package agents is the directory of agents: which there are, what they can do, and
// their open streams.
//
// The nouns:
//
//   - An [Agent] is an entry of the [Directory]: a [Registration], which says
//     what it listens to and which tools it provides, and a [Status].
//   - A [Link] is one open stream of an agent. Each has a generation, a number
//     that is given once. A link owns everything that belongs to its stream; the end
//     of a link changes no other link.
//   - A [ToolCall] is a tool call on its way to the agent that provides the tool. It
//     has an id of the directory, and only its own link can answer it.
//   - A [State] is data that an agent asks to store.
//   - A [Gap] says which events an agent had been sent when its stream broke. It is
//     stored, so that the next stream continues there. Where several bridges have the
//     store, the one that serves the newest stream has a claim to it.
//
// Each tenant has its own agents; nothing crosses tenants. Registrations live in
// memory: agents register again after a restart.
//
// An agent may have several streams. The newest one gets the calls; when it ends they go to
// the newest remaining one. Of several agents of loom.v1 that provide a tool of one name,
// the first that has a stream is called; native agents can't take a name that another one
// has.
//
// Caveats: a registration without a stream is forgotten after a while. What the
// directory hands out is shared and must not be changed. Gaps are written
// without a sync and a little late: a killed process loses the last milliseconds of
// them, a loss of power more. The events of that time are then sent a second time.
package agents
