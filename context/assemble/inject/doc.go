// Package inject makes the parts of a prompt that are no history: who may put what
// into it, in which order, and within which budget.
//
// The nouns:
//
//   - An [Injection] is one such part: a text, or separate messages, with its
//     [Phase], [Cache] class, priority and cap.
//   - [Arrange] puts injections in order, cuts each to its cap and all together to
//     their total, and keeps them from writing into each other. [Arranged] is what
//     became of them, and a [Piece] the outcome of one.
//
// Everything here is pure: the same inputs give the same bytes. There is no clock,
// no storage and no map order.
//
// What strangers wrote can't leave its place; [Guard] has the rule.
//
// Caveats: a character that only looks like one of a tag's name is not seen through.
// Tokens are counted text by text; what joins two texts counts as joinTokens.
package inject
