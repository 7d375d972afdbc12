// Package render writes a prompt from its beginning to its end, and accounts for
// each of its tokens.
//
// The nouns:
//
//   - A [Job] says what a prompt is written for: a format, a model, a budget.
//   - A [Builder] writes one prompt: its frame, its [Tools] and the messages of
//     its history, each counted once and owned by a section.
//   - [Written] is what came of it, in the format of the job.
//   - An [End] is where a message ends, with a [Sum] of everything before it; the [Edges]
//     are the ends that a provider's cache may keep.
//   - A [Trail] is what a session's last prompt had up to its last fold. The next
//     one is written from there, if it begins with the same messages.
//
// The same items make the same bytes, with a trail or without. Nothing here
// reads a log or remembers a session.
//
// Caveats: a builder is for one prompt and one goroutine. Its fields are for
// reading: what is set from outside is not in the bytes.
package render
