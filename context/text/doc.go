// Package text holds the small rules for texts that prompts, answers and errors
// share: JSON in one form (CanonicalJSON, DecodeJSON), sizes for people (HumanSize),
// a text on one line (OneLine), and cuts (Head, Tail, Cut and their like).
//
// A function says in its name and its doc what it bounds: bytes, or characters,
// which are code points. No cut splits a character of valid UTF-8; one may split a
// grapheme, such as a letter from its accent.
//
// The package is pure; all functions are safe for concurrent use.
package text
