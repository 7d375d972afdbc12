// Package server is the gRPC face of Loom Bridge: it checks a request, finds
// out who asks, calls one domain method and turns the answer, or the error,
// back into protobuf. It holds no rule about memory, context, tools or events.
//
// The nouns:
//
//   - [Services] are the domain objects behind the handlers, as interfaces.
//   - [Server] owns the listening gRPC server: [Server.Serve] until
//     [Server.Shutdown], which drains.
//   - [Credentials] say which caller may act for which agents of which tenant;
//     an [Identity] is one caller, and every scope is made from it.
//   - [Limits] are the bounds on sizes, counts and times.
//
// Every call passes the same chain: metrics, log, error mapping, stream guard,
// limits, authentication, recovery, handler. Errors of all packages become
// gRPC statuses in one table (errors.go), form rules of requests are checked
// in one file (validate.go).
//
// Caveats: without credentials the agent id of a request is believed, so a
// Server then serves loopback addresses and Unix sockets only.
package server
