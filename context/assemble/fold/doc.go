// Package fold makes the history of a prompt fit: what of it is shown, what stands as a fold
// or as a line, and what leaves.
//
//   - A [Stage] folds the histories of a server. A [Folding] is the history of one prompt, by
//     some [Rules].
//   - A [Material] is the part of it that was read: folds, and groups of entries.
//   - An [Ask] says what the rest of the prompt leaves to the history, a [Draft] is the
//     resulting history: its messages, and the folds to store before they are shown.
//   - A [Batch] is the account of a batch of folds.
//
// The ledger folds old turns where that pays; a preset has fixed rules, for text or for
// messages; levels of pressure leave out what does not fit even then. A result that the model
// has not seen is never folded where a part of it fits, be it in place of what was said before.
//
// Nothing is written here but the folds that make room to read on. The same source and the
// same ask give the same draft.
package fold
