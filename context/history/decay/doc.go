// Package decay lays out a history whose messages fade by age. It stores nothing and
// knows no message: units come in with their sizes, and a layout says in which form
// each stands.
//
// The nouns:
//
//   - A [Unit] is what stays, moves and goes together: a message, or a call with its
//     results and the calls of the same turn.
//   - Zones part the units by age. The newest stand in full, those before are folded
//     ([Fold] shortens a text, [CallLine] is a call on one line), and a
//     summary stands for all older ones.
//   - Images fade apart from that, by the turns of the user: [ImageLine].
//   - [Fit] is the last resort: what does not fit is left out, the oldest first.
//   - A [ShownUnits] is what stands in the prompt, with the mark to keep.
//
// What it promises: a form is used only where it takes fewer tokens than the one
// before it; a summary is made of the messages themselves, never of a summary; what
// stays or is kept is neither folded, summarized nor left out. Unless a conversation
// is literal, boundaries move in batches, as in package history, and never past where the
// rules would put them.
//
// In a [history.Mark], Older, Omitted and Whole are the positions of the newest unit that
// is folded, summarized and left out. Left counts the units left out, Lost the calls shown
// as text. Seen is the end of the log when the boundaries moved, Bare the newest turn whose
// images are lines.
package decay
