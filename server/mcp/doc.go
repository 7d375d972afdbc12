// Package mcp serves the domain to hosts of the Model Context Protocol.
//
// A [Server] has tools, resources and prompts over memory, context, events and the
// tools of the bridge. It keeps nothing and decides nothing: each of its calls is a call
// of the native API over a gRPC connection, with the caller's own credential, so
// that API's checks, limits, approval and audit apply. The connection may lead to this
// process ([Face]) or to another one (the command `mcp`).
//
// A Server speaks to one host over a pair of pipes with [Server.Run]. A [Face] serves it
// over HTTP behind package web: without state to clients of the protocol 2026-07-28, with
// sessions to older ones.
//
// The files: server.go what a Server is, tools.go how a tool is declared and called,
// memory.go, context.go, events.go and native.go the tools, resources.go and prompts.go
// the rest, answers.go results and errors, http.go and sessions.go the face.
package mcp
