// Package hooks understands what hosts such as editors and coding agents report at points
// of their sessions, and does with it what there is to do: what a tool gave becomes a
// step, what was said a message; a summary of the memory is given back when a session begins and
// after the host has compacted its conversation.
//
// [Parse] reads an [Event] from what a host writes to a hook, [Handler.Handle] does it by
// calls of the native API, and [Event.Answer] is what the host reads back. An event that its
// host names or dates changes nothing the second time: hosts run the hooks of others, too.
//
// A host's own id of a session is the session's. What is given back is bounded by
// contextTokens and by maxContextChars, and says that results of tools in it are data.
package hooks
