// Package rest serves the native API as JSON over HTTP.
//
// A file beside the protos (package proto) says by which method and path each call is reached;
// the rest is the protos' own JSON. A [Handler] decodes a request, makes the call over a
// connection to the native API, whose checks, limits, identity and audit so hold, and encodes
// the answer. It adds no rule about any call, except how two streams are resumed.
//
// [OpenAPI] describes the calls for programs and [Docs] for people: a page without scripts, made
// of that description.
//
// A stream is lines of JSON, `{"result": …}` each and `{"error": …}` at the end of one that
// failed, or with `Accept: text/event-stream` server-sent events. Calls with more than one
// message from the client are not served: Attach, UploadStep and Import.
package rest
