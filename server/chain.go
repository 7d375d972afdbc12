package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	authenticating "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/redaction"
)

// unaryChain is the order every unary call passes: observers outside, so that they see the
// client's answer; recovery next to the handler, so that a panic is one more error on its
// way out.
func (s *Server) unaryChain() []grpc.UnaryServerInterceptor {
	name, _ := auth.Filling(auth.Name)
	own, _ := auth.Filling(auth.Own)
	chain := []grpc.UnaryServerInterceptor{
		name,
		interceptors.UnaryServerInterceptor(s.observer),
		s.mapUnary,
		selector.UnaryServerInterceptor(authenticating.UnaryServerInterceptor(s.authenticate), selector.MatchFunc(notPublic)),
		own,
		selector.UnaryServerInterceptor(s.limitCalls, selector.MatchFunc(limited)),
		recoverUnary,
		s.acceptUnary,
	}
	if s.forwards != nil {
		chain = append(chain, s.forwards.Unary)
	}
	if s.metrics != nil {
		chain = append([]grpc.UnaryServerInterceptor{s.metrics.Unary()}, chain...)
	}
	return append([]grpc.UnaryServerInterceptor{sendAnswers}, chain...)
}

// streamChain is the same order for streams, with the guard inside the error
// mapping.
func (s *Server) streamChain() []grpc.StreamServerInterceptor {
	_, name := auth.Filling(auth.Name)
	_, own := auth.Filling(auth.Own)
	chain := []grpc.StreamServerInterceptor{
		name,
		interceptors.StreamServerInterceptor(s.observer),
		mapStream,
		s.guardStream,
		selector.StreamServerInterceptor(authenticating.StreamServerInterceptor(s.authenticate), selector.MatchFunc(notPublic)),
		own,
		selector.StreamServerInterceptor(s.limitStreams, selector.MatchFunc(notHealth)),
		boundDescriptions,
		recovery.StreamServerInterceptor(recovery.WithRecoveryHandlerContext(recovered)),
		s.acceptStream,
	}
	if s.metrics != nil {
		chain = append([]grpc.StreamServerInterceptor{s.metrics.Stream()}, chain...)
	}
	return chain
}

// mapUnary converts errors into statuses, and answers too large to send into
// errors: gRPC itself would refuse them without a reason.
func (s *Server) mapUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	answer, err := next(ctx, req)
	if err == nil {
		err = checkSize(answer, s.limits.MaxSendBytes)
	}
	if err != nil {
		return nil, failureOf(ctx, err)
	}
	return answer, nil
}

// forwarded is what a call of another server passes: its caller was authenticated there.
func (s *Server) forwarded(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	answer, err := s.mapUnary(ctx, req, info, func(ctx context.Context, req any) (any, error) {
		ctx, leave, err := s.enterForwarded(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		answer, err := recoverUnary(ctx, req, info, func(ctx context.Context, req any) (any, error) { return s.acceptUnary(ctx, req, info, next) })
		if err != nil && errors.Is(context.Cause(ctx), errCutOff) {
			return nil, errCutOff
		}
		return answer, err
	})
	if fault, ok := errors.AsType[*observe.CallError](err); ok && fault.Hidden {
		s.observer.Log.ErrorContext(ctx, "a call that another server forwarded failed", "method", info.FullMethod, "error", fault.Cause)
	}
	return answer, err
}

var recoverUnary = recovery.UnaryServerInterceptor(recovery.WithRecoveryHandlerContext(recovered))

func checkSize(answer any, limit int) error {
	message, ok := answer.(proto.Message)
	if !ok {
		return nil
	}
	if size := proto.Size(message); size > limit {
		return fmt.Errorf("%w: the answer of %d bytes exceeds %d; ask for less", ErrTooLarge, size, limit)
	}
	return nil
}

func mapStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	err := next(srv, stream)
	if errors.Is(err, ErrSlowConsumer) && strings.HasPrefix(info.FullMethod, loomPrefix) {
		err = errLoomSlowConsumer
	}
	if err != nil {
		return failureOf(stream.Context(), err)
	}
	return nil
}

// loomPrefix begins every method of the loom.v1 API.
const loomPrefix = "/loom.v1."

// errLoomSlowConsumer ends a stream of loom.v1: its clients connect again only
// after UNAVAILABLE.
var errLoomSlowConsumer = errors.New("server: the stream took nothing for too long; connect again")

// acceptUnary takes in what could be decoded, of an agent that may still do something.
func (s *Server) acceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	err := refuseMarked(req)
	if err == nil {
		ctx, err = s.mayAct(ctx, info.FullMethod, req)
	}
	if err == nil {
		err = checked(req)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := visits{erasures: s.services.Erasures, end: cancel}
	defer v.leave()
	if err := v.enter(ctx, info.FullMethod, req); err != nil {
		return nil, err
	}
	redaction.Request(s.redact, req)
	answer, err := next(ctx, req)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, live.ErrErasing) {
		err = cause
	}
	return answer, err
}

func (s *Server) acceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx := stream.Context()
	accepting := &acceptingStream{ServerStream: stream, server: s, method: info.FullMethod, whole: !info.IsClientStream}
	accepting.visits = visits{erasures: s.services.Erasures, end: func(err error) { endStream(ctx, err) }}
	defer accepting.visits.leave()
	return next(srv, accepting)
}

type acceptingStream struct {
	grpc.ServerStream
	server *Server
	method string
	whole  bool // the request is one message; of others the method checks the first
	visits visits
	// begun says that the first message has come, which names whom the stream is for. Only
	// one goroutine may receive.
	begun bool
}

func (s *acceptingStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if err := refuseMarked(m); err != nil {
		return err
	}
	if _, err := s.server.mayAct(s.Context(), s.method, m); err != nil {
		return err
	}
	if err := checked(m); err != nil && s.whole {
		return err
	}
	if !s.begun {
		s.begun = true
		if err := s.visits.enter(s.Context(), s.method, m); err != nil {
			return err
		}
	}
	redaction.Request(s.server.redact, m)
	return nil
}

// visits are the places of a call at the gate of erasures: one for each agent and person that
// its messages name.
type visits struct {
	erasures *live.Worker
	end      func(error)

	mu   sync.Mutex // guards the fields below: a stream may be received from while it ends
	over bool
	all  map[kv.Scope]*live.Visit
}

// enter counts a call in for those whom a message names, unless they are being erased. Whom
// the caller may not act for is for the method to say.
func (v *visits) enter(ctx context.Context, method string, message any) error {
	caller, known := auth.Of(ctx)
	if !known {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for scope := range named(caller, method, message) {
		if v.all[scope] != nil || v.over {
			continue
		}
		visit, err := v.erasures.Enter(scope, v.end)
		if err != nil {
			return err
		}
		if v.all == nil {
			v.all = make(map[kv.Scope]*live.Visit, 1)
		}
		v.all[scope] = visit
	}
	return nil
}

func (v *visits) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	for _, visit := range v.all {
		visit.Leave()
	}
	v.all = nil
}

// named yields the scopes of the agents and persons that a message of a caller names. Of
// loom.v1 a session is the agent of that name.
func named(caller auth.Identity, method string, message any) iter.Seq[kv.Scope] {
	return func(yield func(kv.Scope) bool) {
		agent := actorOf(message)
		if m, ok := message.(interface{ GetSessionId() string }); ok && agent == "" && strings.HasPrefix(method, loomPrefix) {
			agent = m.GetSessionId()
		}
		if _, ok := message.(*loombridgev1.AssembleRequest); ok && !yield(live.PromptsOf(caller.Tenant())) {
			return
		}
		if agent != "" && caller.Owns(agent) && !yield(kv.AgentScope(caller.Tenant(), agent)) {
			return
		}
		person := func(id string) bool {
			return id == "" || yield(kv.Scope{Tenant: caller.Tenant(), Kind: kv.OwnerUser, Owner: id})
		}
		if m, ok := message.(interface{ GetUserId() string }); ok && !person(m.GetUserId()) {
			return
		}
		if m, ok := message.(interface {
			GetOwners() []*loombridgev1.MemoryOwner
		}); ok {
			for _, owner := range m.GetOwners() {
				if !person(owner.GetUserId()) {
					return
				}
			}
		}
	}
}

// panicError is a panic of a handler on its way to the log.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("server: panic: %v\n%s", e.value, e.stack) }

func recovered(_ context.Context, value any) error {
	return &panicError{value: value, stack: debug.Stack()}
}

// notHealth leaves out health checks, which load balancers make without a
// credential, and which have to be answered under load.
func notHealth(_ context.Context, call interceptors.CallMeta) bool {
	return call.Service != grpc_health_v1.Health_ServiceDesc.ServiceName
}

// notPublic leaves out what needs no credential: health checks, and reflection,
// which says what everybody finds in the .proto files.
func notPublic(ctx context.Context, call interceptors.CallMeta) bool {
	return notHealth(ctx, call) && !strings.HasPrefix(call.Service, reflectionPrefix)
}

// limited leaves out what must be answered under load: health checks, and the
// heartbeats of loom.v1, whose clients connect again when one fails.
func limited(ctx context.Context, call interceptors.CallMeta) bool {
	return notHealth(ctx, call) && (call.Service != loomv1pb.Bridge_ServiceDesc.ServiceName || call.Method != "Heartbeat")
}
