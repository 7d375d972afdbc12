// Package server is the gRPC face of Loom Bridge: it checks a request, finds
// out who asks, calls one domain method and turns the answer, or the error,
// back into protobuf. It holds no rule about memory, context, tools or events.
//
// The nouns:
//
//   - [Services] are the domain objects behind the handlers, as interfaces.
//   - [Server] owns the listening gRPC server: [Server.Serve] until
//     [Server.Shutdown], which drains.
//   - Package auth says who calls, and makes every scope from that.
//   - [Limits] are the bounds on sizes, counts and times.
//
// A connection keeps its place as package conns decides. Every call is admitted
// by its headers (admit.go), and what its messages hold is counted before they are
// decoded (codec.go, package admission). Then it passes the same chain: metrics,
// log, error mapping, stream guard, authentication, a place from its tenant's and
// agent's share (package share), recovery, handler. Errors of all packages become
// gRPC statuses in one table (errors.go), form rules of requests are checked by
// package validate.
//
// Caveats: without credentials the agent id of a request is believed, so a
// Server then serves loopback addresses and Unix sockets only.
package server
