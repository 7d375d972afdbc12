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
//   - A [Layout] is what stands in the prompt, with the mark to keep.
//
// What it promises: a form is used only where it takes fewer tokens than the one
// before it; a summary is made of the messages themselves, never of a summary; what
// stays or is kept is neither folded, summarized nor left out. Unless a conversation
// is literal, boundaries move in batches, as those of package history do, and never
// past where the rules would put them.
//
// Of a [history.Mark] Older is the position of the newest unit that is folded,
// Omitted that of the newest one that is summarized, and Whole that of the newest one
// that is left out, Left how many are, and Lost how many calls are text; Seen is where the log ended when they moved, and Bare the newest
// turn whose images are lines.
package decay
