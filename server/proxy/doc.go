// Package proxy stands between programs and the providers of models, for programs that can
// change nothing but the address they ask.
//
// A [Handler] serves /proxy/NAME/ for each upstream: what comes is sent to the same path there,
// with the caller's own key, and the answer goes back as it comes, byte for byte. The key is in
// headers that are passed on and is kept nowhere: no text made here has a header, a body or an
// address with its query.
//
// What is said in the APIs that it knows is recorded in a session: that of Loom-Session-Id, or
// the one whose whole log the conversation begins with, or a new one. The results of calls are
// steps. A [Handler] does so by calls of the native API, beside the request, and what can't be
// recorded is passed on all the same. An answer that breaks is not recorded; a program that keeps
// it says it again with its next request, as all that was lost.
//
// What memory has for a message of the user's is added behind it, as prompts of the native API
// have it. A conversation that is over the model's window says no more than the prompt of its
// session shows, and one of a session that somebody configured never does: what that folds or
// shortens is found in the request, and all else of it stays as it is; the log has it all. Where
// there is neither, no byte changes. Each request has a prompt of its session, with a receipt,
// and what the provider counts is reported for it.
//
// Nothing is sent twice: a request whose sending broke is an error of the caller's, who is told
// with X-Should-Retry not to repeat what may have been paid for. A redirect is not followed.
package proxy
