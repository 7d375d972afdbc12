// Package forward takes calls that touch a workspace to the server that has it, and answers
// calls that other servers on the store forward.
//
// A call travels with its caller's identity and comes back with its answer or its status,
// both as the other server made them. Which server that is, [Places] knows; which calls touch
// a workspace, the [Route] of their method.
package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// Route describes the calls of one method.
type Route struct {
	// Touches says whose workspace a request touches; false for none, and for a request
	// that the method refuses.
	Touches func(ctx context.Context, request proto.Message) (kv.Scope, bool)
	// Call answers a request.
	Call func(ctx context.Context, request proto.Message) (proto.Message, error)
	// Away is what the method gets, with the ctx that this returns, when the workspace can't
	// be reached, so that it answers what needs none. Default: the call fails.
	Away func(ctx context.Context, err error) context.Context
	// Request makes an empty request, and Answer an empty answer.
	Request, Answer func() proto.Message
}

// To is the route to a method.
func To[Q, A any, PQ interface {
	*Q
	proto.Message
}, PA interface {
	*A
	proto.Message
}](call func(context.Context, PQ) (PA, error), touches func(context.Context, PQ) (kv.Scope, bool)) Route {
	return Route{
		Touches: func(ctx context.Context, request proto.Message) (kv.Scope, bool) {
			r, ok := request.(PQ)
			if !ok {
				return kv.Scope{}, false
			}
			return touches(ctx, r)
		},
		Call: func(ctx context.Context, request proto.Message) (proto.Message, error) {
			return call(ctx, request.(PQ))
		},
		Request: func() proto.Message { return PQ(new(Q)) },
		Answer:  func() proto.Message { return PA(new(A)) },
	}
}

// Forwarder takes calls to other servers. Its methods are safe for concurrent use once it
// serves.
type Forwarder struct {
	places *places.Places
	routes map[string]Route
	around grpc.UnaryServerInterceptor
	logger *slog.Logger
}

// New returns a forwarder. around is what the calls that others forward pass on their way to
// their method: it makes a status of each error.
func New(p *places.Places, around grpc.UnaryServerInterceptor, logger *slog.Logger) *Forwarder {
	return &Forwarder{places: p, routes: map[string]Route{}, around: around, logger: logger}
}

// Add adds the route to a method, before any call, and answers calls of it that others
// forward from now on.
func (f *Forwarder) Add(method string, r Route) {
	f.routes[method] = r
	f.places.Serve(method, func(ctx context.Context, payload []byte) []byte { return f.handle(ctx, method, r, payload) })
}

// Unary takes a call to the server that has the workspace, if it touches one that another
// server has.
func (f *Forwarder) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	route, ok := f.routes[info.FullMethod]
	message, isMessage := request.(proto.Message)
	if !ok || !isMessage {
		return next(ctx, request)
	}
	scope, touches := route.Touches(ctx, message)
	if !touches {
		return next(ctx, request)
	}
	at, err := f.places.Where(ctx, scope)
	if _, away := errors.AsType[*places.Error](err); away && route.Away != nil {
		return next(route.Away(ctx, err), request)
	}
	if err != nil {
		return nil, err
	}
	if at.IsZero() {
		return next(ctx, request)
	}
	payload, err := encodeCall(ctx, message)
	if err != nil {
		return nil, err
	}
	got, err := f.places.Forward(ctx, scope, at, info.FullMethod, payload)
	if err != nil {
		return nil, err
	}
	answer := route.Answer()
	return answer, decodeAnswer(got, answer)
}

// handle answers a call of another server.
func (f *Forwarder) handle(ctx context.Context, method string, route Route, payload []byte) []byte {
	request := route.Request()
	ctx, err := decodeCall(ctx, payload, request)
	if err != nil {
		f.logger.Error("a call of another server can't be read", "error", err)
		return encodeAnswer(nil, err)
	}
	answer, err := f.around(ctx, request, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, request any) (any, error) {
		return route.Call(ctx, request.(proto.Message))
	})
	message, _ := answer.(proto.Message)
	return encodeAnswer(message, err)
}

// Fields of a call and of its answer.
const (
	fieldIdentity = iota + 1
	fieldMessage
	fieldAsText
	fieldStatus
)

func encodeCall(ctx context.Context, request proto.Message) ([]byte, error) {
	id, ok := auth.Of(ctx)
	if !ok {
		return nil, auth.ErrUnauthenticated
	}
	text, err := proto.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	payload := wire.AppendItem(wire.AppendText(nil, fieldIdentity, id.Encode()), fieldMessage, text)
	if convert.AsText(ctx) {
		payload = wire.AppendUint(payload, fieldAsText, 1)
	}
	return payload, nil
}

// decodeCall reads a call into its request, and returns ctx as that of its caller.
func decodeCall(ctx context.Context, payload []byte, request proto.Message) (context.Context, error) {
	var id auth.Identity
	var asText bool
	for field, err := range wire.Fields(payload) {
		if err != nil {
			return nil, err
		}
		switch field.Number {
		case fieldIdentity:
			if id, err = auth.DecodeIdentity(field.Bytes); err != nil {
				return nil, err
			}
		case fieldMessage:
			if err := proto.Unmarshal(field.Bytes, request); err != nil {
				return nil, err
			}
		case fieldAsText:
			asText = true
		}
	}
	if asText {
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(convert.JSONKey, convert.JSONText))
	}
	return auth.With(ctx, id), nil
}

func encodeAnswer(answer proto.Message, err error) []byte {
	var text []byte
	if err == nil {
		text, err = proto.Marshal(answer)
	}
	if err == nil {
		return wire.AppendItem(nil, fieldMessage, text)
	}
	said, _ := status.FromError(err)
	encoded, err := proto.Marshal(said.Proto())
	if err != nil {
		encoded = nil // an unknown error
	}
	return wire.AppendItem(nil, fieldStatus, encoded)
}

func decodeAnswer(b []byte, answer proto.Message) error {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return fmt.Errorf("forward: answer: %w", err)
		}
		switch f.Number {
		case fieldMessage:
			if err := proto.Unmarshal(f.Bytes, answer); err != nil {
				return fmt.Errorf("forward: answer: %w", err)
			}
			return nil
		case fieldStatus:
			var sent spb.Status
			if err := proto.Unmarshal(f.Bytes, &sent); err != nil {
				return fmt.Errorf("forward: answer: %w", err)
			}
			return status.ErrorProto(&sent)
		}
	}
	return errors.New("forward: an answer with nothing in it")
}
