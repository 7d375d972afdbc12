// Package agents knows who is there: which agents, what they can do, and the
// streams that lead to them.
//
// The nouns:
//
//   - An [Agent] is an entry of the [Directory]: a [Registration], which says
//     what it listens to and which tools it provides, and a [Status].
//   - A [Link] is one open stream of an agent. Each has a generation, a number
//     that is never given again. Everything that a stream owns hangs on its link,
//     and the end of a link touches nothing of another.
//   - A [ToolCall] is a tool call on its way to the agent that provides the tool. It
//     travels under an id of our own, and only its own link can answer it.
//   - A [State] is what an agent wants to have kept; it is stored.
//   - A [Gap] is how far an agent had been served when its stream broke. It is
//     stored as well, so that the next stream can begin where that one ended.
//
// Each tenant has its own agents; nothing crosses tenants. Registrations live in
// memory: agents register again after a restart.
//
// An agent may have several streams. The newest one gets the calls; when it ends
// they go to the newest one that is still open. Of several agents of loom.v1 that
// provide a tool of one name, the first that has a stream is called; native agents
// can't take a name that another one has.
//
// Caveats: a registration without a stream is forgotten after a while. What the
// directory hands out is shared and must not be changed. Gaps are written
// without a sync and a little late: a killed process loses the last few
// milliseconds of them, a dead machine some more, and what was served then is
// served once more.
package agents
