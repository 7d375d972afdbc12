// Package vary varies the form of what changes with every prompt, so that a model does
// not fall into a pattern.
//
// [Choose] gives the [Forms] of a turn: which separator stands before the runtime
// sections, how a list is marked, what a state is called and how progress is written. The
// choice comes from the names of the session and the turn alone, so the same turn has the
// same bytes. Only phase Runtime may use it: behind it nothing is cached.
package vary
