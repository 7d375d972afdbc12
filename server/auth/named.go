package auth

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Metadata by which a caller names its agent and session once for all its calls.
const (
	AgentKey   = "loom-agent-id"
	SessionKey = "loom-session-id"
)

// native is the package whose requests take names from metadata.
const native protoreflect.FullName = "loombridge.v1"

// Name fills the agent_id and session_id that a request leaves empty from the metadata of its
// call. What the request says stays. It gives no right: whether the caller may act for the agent
// is asked of the request as if it had said so itself.
func Name(ctx context.Context, request any) {
	m, ok := request.(proto.Message)
	if !ok || m.ProtoReflect().Descriptor().ParentFile().Package() != native {
		return
	}
	name(ctx, m.ProtoReflect(), "agent_id", AgentKey)
	name(ctx, m.ProtoReflect(), "session_id", SessionKey)
}

// within are the messages of the first request of a stream that say whose it is.
var within = []protoreflect.Name{"hello", "step"}

func name(ctx context.Context, m protoreflect.Message, field protoreflect.Name, key string) {
	values := metadata.ValueFromIncomingContext(ctx, key)
	if len(values) == 0 || values[0] == "" {
		return
	}
	fields := m.Descriptor().Fields()
	f := fields.ByName(field)
	if f == nil {
		for _, inner := range within {
			if f := fields.ByName(inner); f != nil && f.Message() != nil && m.Has(f) {
				name(ctx, m.Mutable(f).Message(), field, key)
			}
		}
		return
	}
	if f.Kind() != protoreflect.StringKind || f.IsList() || f.ContainingOneof() != nil || m.Get(f).String() != "" {
		return
	}
	if selects, _ := proto.GetExtension(f.Options(), loombridgev1.E_Selects).(bool); !selects {
		m.Set(f, protoreflect.ValueOfString(values[0]))
	}
}

// NameUnary is Name for the request of a unary call.
func NameUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	Name(ctx, req)
	return next(ctx, req)
}

// NameStream is Name for the first request of a stream.
func NameStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, &namedStream{ServerStream: stream})
}

// namedStream names the first request. Only one goroutine may receive.
type namedStream struct {
	grpc.ServerStream
	begun bool
}

func (s *namedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil && !s.begun {
		s.begun = true
		Name(s.Context(), m)
	}
	return err
}
