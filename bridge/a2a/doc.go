// Package a2a keeps the tasks that clients of the Agent2Agent protocol give to agents, as
// durable events.
//
//   - A [Task] is a topic, see [Topic]: the agent's inbox for that task. Its first event is the
//     message that gave it; messages of its giver and what the agent says follow. Nothing else is
//     stored, so a task is kept, counted and erased as events are.
//   - A turn begins with a message and ends with an answer: an event of a type that closes it, by
//     which the task ends or waits for its giver. Of two answers the first counts.
//   - [Tasks] reads them, and rules which events they take, see [Tasks.Admit].
//
// An agent listens to [Topic] of all its tasks, for events of type [Message], and answers as any
// request is answered: a reply completes the task, a reply with the header `error` fails it. It
// says more by emitting on the topic itself with one of the other types.
//
// Caveats: of two events that are emitted at the same moment both may be stored; the one that
// comes second counts for nothing where the first ended the turn. A task is gone with the first
// of its events.
package a2a
