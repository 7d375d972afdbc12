// Package servertest starts a whole server inside a test: every domain package
// on an engine in memory, the full interceptor chain, and a real gRPC client
// over an in-memory listener.
//
// [Start] returns a [Server] with a client for each service, the directory the
// tools work in, and a [Clock] that the test may move. Everything is closed at
// the end of the test, and the memory index is compared with its records then.
package servertest
