// Package rehydrate brings back lines of folded results that the model turns out to
// need.
//
// A fold keeps the names that a result held, not what was said of them. When the
// model's newest call, a new message of the user or the goal takes up a name that only
// the folds of a prompt have, the lines of the folded result with that name return at
// the end of the prompt, each with the reference of its step, within a budget.
//
// [Finder.Wants] says which folded results are asked for, [Lines] takes the lines out of
// one, and [Section] makes an injection of them. Nothing here reads a log. The same
// prompt gives the same lines: a Finder only remembers what it read in folds.
//
// What stands in the prompt already is not brought back, and no line twice. A name that
// only the digest of a dense fold has leads nowhere, because that says of no name which
// step it came from.
package rehydrate
