// Package tokens counts what a text costs in a model's prompt.
//
// The nouns:
//
//   - An [Encoding] is a vocabulary that texts are cut into.
//   - A [Count] is a number of tokens, the encoding behind it, and whether it is
//     exact.
//   - A [Counter] counts texts, messages and tool definitions for a model.
//
// The vocabularies are part of the binary: nothing is downloaded. Each is
// loaded once for the whole process, when it is first needed.
//
// Caveats: the engine behind the counter needs quadratic time for a run of
// characters it can't split. Longer runs than [MaxRunBytes] are therefore
// counted in pieces, and the count says that it is estimated. Invalid UTF-8
// counts as the replacement character, byte for byte. Special tokens such as
// <|endoftext|> are counted as the plain text they are.
package tokens
