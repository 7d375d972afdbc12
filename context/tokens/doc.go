// Package tokens counts what a text costs in a model's prompt.
//
// The nouns:
//
//   - An [Encoding] is a vocabulary that texts are cut into.
//   - A [Model] describes a model: how it is counted, its window, its
//     prices. [Models] is the table of them, which a user may lay a table of
//     his own over.
//   - A [Count] is a number of tokens, what counted it, and whether it is exact,
//     anchored or estimated.
//   - A [Counter] counts texts, messages, images and tool definitions for a
//     model.
//   - A [Meter] learns from the usage that providers report, and predicts what
//     the next prompt will be counted as. An [Anchor] is a prompt whose size a
//     provider reported.
//
// A text is cut into pieces by the rules of the vocabulary, without a regular
// expression. Most pieces are tokens themselves; the others are merged by
// looking for the one sequence of tokens whose neighbours stay apart, in time
// linear in the piece, however long it is. The result is what merging byte
// pairs by rank gives.
//
// The vocabularies are part of the binary: nothing is downloaded. Each is
// loaded once for the whole process, when it is first needed; that takes about
// a tenth of a second and up to 20 MB. Each text that is counted at a time takes
// another megabyte, which is kept for the next one.
//
// Caveats: invalid UTF-8 counts as the replacement character, byte for byte.
// Special tokens such as <|endoftext|> are counted as the plain text they are.
// Counts for models other than OpenAI's are estimates until usage anchors them: they use
// the nearest vocabulary, scaled so that no kind of text counts less than 95 % of its real
// tokens. estimate_test.go has the measurements.
package tokens
