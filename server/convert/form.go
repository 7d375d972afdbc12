package convert

import (
	"context"

	"google.golang.org/grpc/metadata"
)

const (
	// JSONKey is the metadata key by which a caller says how JSON comes back in answers:
	// [JSONText], or as protobuf's own types.
	JSONKey = "loom-json"
	// JSONText asks for JSON as it was written, in the `_json` fields of answers.
	JSONText = "text"
)

// AsText says whether the caller behind ctx asks for JSON as text.
func AsText(ctx context.Context) bool {
	values := metadata.ValueFromIncomingContext(ctx, JSONKey)
	return len(values) > 0 && values[0] == JSONText
}

// AskText returns the context of a call whose answer has JSON as text.
func AskText(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, JSONKey, JSONText)
}
