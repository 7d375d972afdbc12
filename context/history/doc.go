// Package history makes a long history small without losing what the next step
// needs. It stores nothing: entries and folds come in, a view and new folds come
// out, and the same input gives the same bytes.
//
// The nouns:
//
//   - An [Entry] is one entry of a session's log. Its [Kind] says whether it may
//     be folded, whatever role it has in a prompt.
//   - A [Ledger] is the default policy. It folds old steps in batches, when that
//     pays at the provider's prices or the budget forces it.
//   - A [Fold] stands for entries of the log. It has a line for each call, with
//     the call as it was made, how to get its result back, and what the result
//     named: paths, failures, numbers with units, links, symbols. It is itself an
//     entry of the log (see [AppendFold]) and never changes.
//   - A [View] is the history as a prompt shows it.
//   - A [Preset] is a compaction by fixed rules instead; a [Compactor] applies it to
//     a [Conversation], whose calls are each an [Act], and gives a [Layout].
//
// What the ledger promises:
//
//   - User and system messages and pinned entries stay as they are. A call and
//     its results, and the calls of one turn, stay or go together. Order is kept.
//   - The history only grows at its end until a batch is made.
//   - A fold is shorter than what it stands for, or it is not made. Of a failure
//     it keeps the lines that say what went wrong.
//   - Lines that the prompt shows already are not shown again: a mark says where
//     they are. When that place is folded, they are shown again.
//   - When folds grow too many, the older ones are made again, denser: from what
//     was recorded of their entries when they were folded, never from the text of
//     folds. That takes as long after ten thousand steps as after a thousand.
//   - Undoing a batch gives the bytes there were before.
//   - What tools and models wrote begins no line of a fold: such lines begin with
//     "| ", and the fold says so. A fold, and a batch, stay small enough to be
//     stored, whatever was written.
//
// Caveats: folds are made from texts of tools and models. A text may look like a mark, so
// the folds name the folded entries, never the text. Reasoning is not kept: of the model's
// words with its calls only names stay.
package history
