// Package session keeps one agent's log: what was said and what was done, and
// what stands in prompts in place of what is old.
//
// The nouns:
//
//   - A [Log] holds the logs of all agents. An agent's log is one scope of the
//     log keyspace.
//   - A session is a named stretch of an agent's log. Its entries have positions
//     1, 2, 3 … without a gap.
//   - An [Entry] is a [Message] of the conversation or a step.
//   - Steps also have a number, which counts over all sessions of the agent.
//   - [Folds] stand in a session's prompts in place of entries. Each fold is an entry of a
//     journal next to the log, and so is its undo; the live folds are found without reading
//     the whole journal. Package history makes folds; this one only keeps them.
//   - A [Task] is a unit of work that the agent took up. The tasks of a session
//     are counted apart from its entries, so that readers of the conversation
//     does not meet them. A [Tally] says the outcome of them.
//   - A [Config] is how a session's prompts are made.
//   - An [Intent] is written before a tool with side effects runs, and taken
//     away by the commit of its step. One that is found when the server starts
//     belongs to a call with an unknown outcome.
//
// Entries of the log and of the journal are only ever added: folding only hides entries
// from prompts, and [Log.Undo] shows them again. [Log.End] says that a session is over; an
// entry added later opens it again.
//
// Functions named Stage… add to a transaction of the caller, who commits it
// together with other things; all others commit for themselves.
//
// Caveats: entries of a kind that a later version wrote are passed over on
// reading, so positions read from such a log may have gaps. Folds of a later
// version are not passed over but refused ([ErrNewer]), because a prompt without
// them would be another one. Two batches of a session may have the same number if
// the first of them was undone.
package session
