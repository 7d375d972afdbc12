// Package converter turns tasks into the messages that stand for them in a prompt.
//
// A [session.Task] becomes one message or none, by its action: [Message] looks the
// action up in one table. Equal tasks give equal messages. [Calling] is the text
// that stands for a call of a tool whose result is left out.
//
// Caveats: what a task holds was written by agents. It stands in the message as it
// came; only names, which stand inside brackets, are put on one line. A direct
// message has the role that it asks for, and a plan of the parent the role system,
// as the documents say.
package converter
