// Package converter converts tasks into the messages that stand for them in a prompt.
//
// A [session.Task] becomes one message or nothing, by its action: [Reader.Message] looks the
// action up in one table. Equal tasks give equal messages. [Calling] is the text
// that stands for a call of a tool whose result is left out.
//
// Caveats: what a task holds was written by agents, and perhaps by others than the one
// whose prompt it is. Package instruct says in which role it stands; the name of another
// agent stands in front of its words, inside brackets and on one line, and letters that
// are invisible are left out.
package converter
