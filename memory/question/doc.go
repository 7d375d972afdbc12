// Package question is what a query asks of memory.
//
//   - A [Question] is the request: a text, what narrows it and how hits are weighed.
//     [Question.Check] holds its limits.
//   - [Question.Read] cuts the text into words once and takes from them all that the
//     search needs: terms, names, moments, kinds of answer. The result is what
//     lexical.Index.Rank takes.
//   - [Clauses] are where a text may come to its question after it spoke of something else.
//   - [Tells] is the other side: which kinds of answer a saved text can give.
//
// Kinds and moments are recognised by English words; terms depend on the store's language.
package question
