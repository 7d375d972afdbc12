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
	for field, key := range map[protoreflect.Name]string{"agent_id": AgentKey, "session_id": SessionKey} {
		if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 && values[0] != "" {
			fill(m.ProtoReflect(), field, values[0])
		}
	}
}

// Own fills the agent_id that a request still leaves empty with the first agent that the caller's
// credential names in full. Of a call, the header says which: whoever has nothing but a token
// learns whom it is for.
func Own(ctx context.Context, request any) {
	id, _ := Of(ctx)
	agent, ok := id.Named()
	if !ok {
		return
	}
	m, ok := request.(proto.Message)
	if ok && m.ProtoReflect().Descriptor().ParentFile().Package() == native && fill(m.ProtoReflect(), "agent_id", agent) {
		_ = grpc.SetHeader(ctx, metadata.Pairs(AgentKey, agent)) // an answer without headers is as good
	}
}

// within are the messages of the first request of a stream that say whose it is.
var within = []protoreflect.Name{"hello", "step"}

// fill sets a field that a request leaves empty and does not select by, and reports whether it did.
func fill(m protoreflect.Message, field protoreflect.Name, value string) bool {
	fields := m.Descriptor().Fields()
	f := fields.ByName(field)
	if f == nil {
		filled := false
		for _, inner := range within {
			if f := fields.ByName(inner); f != nil && f.Message() != nil && m.Has(f) {
				filled = fill(m.Mutable(f).Message(), field, value)
			}
		}
		return filled
	}
	if f.Kind() != protoreflect.StringKind || f.IsList() || f.ContainingOneof() != nil || m.Get(f).String() != "" {
		return false
	}
	if selects, _ := proto.GetExtension(f.Options(), loombridgev1.E_Selects).(bool); selects {
		return false
	}
	m.Set(f, protoreflect.ValueOfString(value))
	return true
}

// Filling does for the requests of calls, and the first request of streams, what fill does: Name,
// or behind authentication Own.
func Filling(fill func(ctx context.Context, request any)) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		fill(ctx, req)
		return next(ctx, req)
	}
	stream := func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return next(srv, &filledStream{ServerStream: stream, fill: fill})
	}
	return unary, stream
}

// filledStream fills in the first request. Only one goroutine may receive.
type filledStream struct {
	grpc.ServerStream
	fill  func(ctx context.Context, request any)
	begun bool
}

func (s *filledStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil && !s.begun {
		s.begun = true
		s.fill(s.Context(), m)
	}
	return err
}
