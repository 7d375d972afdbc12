// Package sharing finds out whose memory a request is about, and whether its caller has
// access to it.
//
// [Reading], [Writing] and [Held] are what the handlers of memory begin with: each checks the
// form of a request, makes the scope from the identity of the caller, and asks package
// grants. [Service] serves SharingService, by which grants are made.
package sharing
