// Package compose builds what stands behind the gRPC face: memory, context,
// tools, events and agents over one engine, wired in one place, so that the
// server, its tests and its measurements run the same thing. It holds no rule of
// its own: each part's package does.
//
// A [Domain] holds the parts and closes them in the right order.
//
// Caveats: the engine stays the caller's, to close after the domain. Close does
// not wait for gRPC calls: stop the face first.
package compose
