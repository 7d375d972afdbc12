// Package web serves HTTP: one address for all that is not gRPC.
//
// A [Face] has handlers, and answers for what they need not look at: whether the Host and the
// Origin may call, who calls, how many requests run, and how much of a body is taken in. What
// a handler gets has been read whole, and its context has the caller (package auth). A body is
// never longer than the limit of a gRPC message, or MaxProgramBytes from Programs; one that is
// packed is refused.
//
// Pages of other sites reach nothing: the Host must be an address, localhost or a name that
// was configured, so that no name that somebody else made lead here counts, and what a browser
// sends from another origin is refused. There is no CORS.
//
// A page of the face signs in with a token: [Face.SignIn] gives it a cookie, which counts together
// with the header KeyHeader for Callers and Operators, for as long as the token does.
package web
