// Package proto has the files next to the protos that the server reads.
package proto

import _ "embed"

// REST says by which method and path of HTTP each call is reached: a google.api.Service, as
// generators of other languages take it.
//
//go:embed loombridge/v1/rest.json
var REST []byte

// OpenAPI describes the calls over HTTP, with the comments of the protos.
//
//go:embed gen/openapi.json
var OpenAPI []byte
