// Package compress makes the result of one tool call small enough for a
// prompt, on request.
//
// The nouns:
//
//   - A Result is what a tool gave, and the call's properties.
//   - A Strategy knows one sort of result: the hits of a search, a file, the
//     output of a command, the answer of an API, and any other text. Each has a
//     size in characters that it stays within.
//   - Compressed is what a prompt shows. When it is not the whole, its last line
//     says where the whole can be read.
//   - A Compressor applies the strategies. It is pure: it stores nothing, and
//     equal input gives equal bytes.
//
// What it promises: a text is only replaced by one that has fewer tokens and no
// more characters; no character is cut in two; the work is in proportion to the
// length of the result, whatever it holds.
//
// Caveats: the caller stores the whole before it shows the short form. A text that looks
// like a short form is treated like any other: only the flags Compressed.IsCompressed and
// Result.IsCompressed count, never the text.
package compress
