// Package selection finds the documents of a scope that may be hits, before any of
// them is ranked.
//
// A [Filter] is a tree of conditions on values, numbers and ordinals. [Options]
// say which tiers, moments and states are asked for. [Select] evaluates both on a
// lexical.Reader and returns a [Selection], which says of each document whether
// it may be a hit and, if not, the [Reason].
//
// Caveats: the index keeps long values as digests only, so some conditions ask a
// [Verifier], which reads the records. A Selection belongs to the state of its
// Reader.
package selection
