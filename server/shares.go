package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conduct"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/unread"
)

// callWait is how long a call waits to run before it is refused: as long as an
// impatient client waits for an answer.
const callWait = 10 * time.Second

// Shares are what the calls and streams of all tenants share. Servers of one
// process may have the same.
type Shares struct {
	// Calls are the unary calls that run.
	Calls *share.Pool
	// Searches are the queries, lists and counts that run: all calls whose work grows with
	// the size of the store or the request (conduct.Searches).
	Searches *share.Pool
	// Streams are the open streams.
	Streams *share.Pool
	// Requests are the bytes of requests in memory.
	Requests *share.Pool
	// Answers are the bytes of answers and events that wait for their readers.
	Answers *share.Pool
	// Disk knows which tenants store more than their share.
	Disk *share.Quota
	// EventBytes are the bytes of events a second while several tenants are there;
	// nil where there is one.
	EventBytes *share.Rate
}

// NewShares returns the shares of a server with these limits, whose zero fields
// are the defaults. OneTenant says that there is only one, for which nothing is
// kept back.
func NewShares(l Limits, oneTenant bool) *Shares {
	l = l.Full()
	var presence *share.Presence
	var eventBytes *share.Rate
	if !oneTenant {
		presence = share.NewPresence()
		eventBytes = share.NewRate("bytes of events a second", int64(l.ContendedEventBytes), presence)
	}
	return &Shares{
		EventBytes: eventBytes,
		Disk:       share.NewQuota("bytes on disk", "--max-store-bytes"),
		Calls: share.New(share.Options{
			Name: "calls in flight", Setting: "--max-calls", Total: int64(l.MaxCalls), Waiting: int64(max(0, l.MaxWaitingCalls)),
			MaxWait: callWait, Contended: int64(l.ContendedCalls), Presence: presence, OneTenant: oneTenant,
		}),
		Searches: share.New(share.Options{
			Name: "running queries", Total: int64(l.MaxSearches), Waiting: int64(max(0, l.MaxWaitingCalls)),
			MaxWait: callWait, Contended: int64(max(1, runtime.GOMAXPROCS(0)/2)), Presence: presence, OneTenant: oneTenant,
		}),
		Streams: share.New(share.Options{
			Name: "open streams", Setting: "--max-streams", Total: int64(l.MaxStreams), OneTenant: oneTenant,
		}),
		Requests: share.New(share.Options{
			Name: "bytes of requests in memory", Setting: "--max-message-bytes", Total: int64(l.MaxRequestBytes), OneTenant: oneTenant,
		}),
		Answers: share.New(share.Options{
			Name: "bytes of answers that wait for their readers", Setting: "--max-message-bytes", Total: int64(l.MaxAnswerBytes),
			Waiting: int64(l.MaxCalls + l.MaxStreams), MaxWait: callWait, OneTenant: oneTenant,
		}),
	}
}

// limitCalls makes a unary call wait for its place among the running ones, or refuses it.
// The call finds the place in its context, to pause it while it waits for another agent.
func (s *Server) limitCalls(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	owner := callerOf(ctx, req)
	ctx, err := s.admitted(ctx, info.FullMethod, owner.Tenant, req, false)
	if err != nil {
		return refusedCall(req, err)
	}
	bytes, err := s.shares.Requests.TryTake(owner, sizeOf(req))
	if err != nil {
		return refusedCall(req, err)
	}
	defer bytes.Leave()
	w, err := s.begin(ctx, searches(info.FullMethod, req), owner)
	if err != nil {
		return refusedCall(req, err)
	}
	defer w.leave()
	answer, err := next(w.ctx, req)
	if err != nil {
		return nil, err
	}
	w.done() // it may wait for its reader
	if err := s.keepAnswer(ctx, info.FullMethod, owner, answer, w.room); err != nil {
		return refusedCall(req, err)
	}
	return answer, nil
}

// work is a call that runs, and what it has taken for that.
type work struct {
	ctx          context.Context // has the places
	call, search *share.Holding
	room         *unread.Reserved // for the answer of a search; nil for none
}

// searches reports whether the work of a call grows with the stored or sent data. A record that
// is deleted by its name is found at once.
func searches(method string, req any) bool {
	one, ok := req.(*loombridgev1.DeleteRecordsRequest)
	return conduct.Searches(method) && !(ok && one.GetName() != nil)
}

// begin takes what a unary call needs to run. One that searches takes room for an answer
// before it makes it; while it waits it has no place that others of its tenant
// could use.
func (s *Server) begin(ctx context.Context, searches bool, owner share.Owner) (w *work, err error) {
	w = &work{ctx: ctx}
	defer func() {
		if err != nil {
			w.leave()
		}
	}()
	if searches {
		// So that there is room for as many answers as there are searches.
		most := min(s.limits.MaxSendBytes, s.limits.MaxAnswerBytes/s.limits.MaxSearches)
		if w.room, err = s.unread.Reserve(ctx, owner, most); err != nil {
			return w, err
		}
		if w.search, err = s.shares.Searches.Take(ctx, owner, 1); err != nil {
			return w, err
		}
	}
	if w.call, err = s.shares.Calls.Take(ctx, owner, 1); err != nil {
		return w, err
	}
	w.ctx = share.With(share.With(ctx, w.search), w.call)
	return w, nil
}

// done gives the places back.
func (w *work) done() {
	w.call.Leave()
	w.search.Leave()
}

func (w *work) leave() {
	w.done()
	w.room.Leave()
}

// sendAnswers has answers keep their places until their readers have them. It stands
// outside of all that looks at answers.
func sendAnswers(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, call := unread.WithCall(ctx)
	return call.Done(next(ctx, req))
}

// keepAnswer takes room for an answer, out of the reservation for it. What did something is
// not said to be refused.
func (s *Server) keepAnswer(ctx context.Context, method string, owner share.Owner, message any, reserved *unread.Reserved) error {
	size := sizeOf(message)
	if size > int64(s.limits.MaxSendBytes) {
		return nil // it is not sent
	}
	call := unread.CallOf(ctx)
	if call == nil {
		return nil // another server sends it
	}
	answer, err := s.unread.TakeCall(ctx, connOf(ctx), owner, int(size), reserved)
	if err != nil && conduct.Changes(method) {
		err = fmt.Errorf("%w: the call succeeded, but there is no room for its answer: %w", kv.ErrUnknownOutcome, err)
	}
	if err == nil {
		call.Hold(answer)
	}
	return err
}

// admitted asks whether a tenant may store what a call would, and binds what it commits to
// that: a stream of messages with each commit, any other call with its first.
func (s *Server) admitted(ctx context.Context, method, tenant string, req any, each bool) (context.Context, error) {
	if !conduct.Stores(method) {
		return ctx, nil
	}
	if !storesNothing(req) {
		if err := s.shares.Disk.Check(tenant); err != nil {
			return nil, err
		}
	}
	return kv.Bounded(ctx, each), nil
}

// storesNothing reports whether a request of a method that stores something may store nothing.
func storesNothing(req any) bool {
	switch m := req.(type) {
	case interface{ GetDryRun() bool }:
		return m.GetDryRun()
	case *loombridgev1.EmitRequest:
		return m.GetDelivery() == loombridgev1.Delivery_DELIVERY_VOLATILE
	case *loombridgev1.ConnectMcpServerRequest:
		return m.GetDefinition() == nil && m.GetName() != "" // it connects anew
	case *loomv1pb.PublishRequest, *loomv1pb.SendEventRequest:
		return true // not every topic is stored
	}
	return false
}

func sizeOf(message any) int64 {
	switch m := message.(type) {
	case *frame:
		return int64(m.size())
	case proto.Message:
		return int64(proto.Size(m))
	}
	return 0
}

// refusedCall is the answer to a call that gets no place. A tool call of loom.v1 is
// answered in every case: its clients lose the code of any other end.
func refusedCall(req any, err error) (any, error) {
	if call, ok := req.(*loomv1pb.ToolCall); ok {
		why := "too many calls are in flight; try again later"
		if errors.Is(err, share.ErrQuota) {
			why = "the tenant stores as much as it may; delete some"
		}
		return &loomv1pb.ToolResult{Id: call.GetId(), Status: loomv1pb.ToolStatus_TOOL_ERROR, Error: &loomv1pb.ToolError{
			Code: "EXECUTION_ERROR", Message: "Execution failed: " + why,
		}}, nil
	}
	return nil, fmt.Errorf("server: call refused: %w", err)
}

// limitStreams refuses streams beyond the share of their tenant, and of their agent
// once the first message says which it is.
func (s *Server) limitStreams(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	tenant, _ := auth.TenantOf(stream.Context())
	ctx, err := s.admitted(stream.Context(), info.FullMethod, tenant, nil, true)
	if err != nil {
		return fmt.Errorf("server: stream refused: %w", err)
	}
	place, err := s.shares.Streams.TryTake(share.Owner{Tenant: tenant}, 1)
	if err != nil {
		return fmt.Errorf("server: stream refused: %w", err)
	}
	defer place.Leave()
	placed := &placedStream{ServerStream: stream, place: place, tenant: tenant}
	placed.slot = s.unread.NewSlot(connOf(ctx), placed.owner)
	defer placed.slot.Leave()
	placed.ctx = unread.WithSlot(ctx, placed.slot)
	if !conduct.Of(info.FullMethod).GetWorks() {
		return next(srv, placed)
	}
	w := &workingStream{placedStream: placed, calls: s.shares.Calls, ctx: placed.ctx}
	if conduct.Searches(info.FullMethod) {
		w.searches = s.shares.Searches
	}
	defer w.leave()
	return next(srv, w)
}

// placedStream charges a stream, and what is sent on it, to the agent that its first
// message names.
type placedStream struct {
	grpc.ServerStream
	ctx    context.Context // grpc.ServerStream hands its context out by a method
	place  *share.Holding
	known  bool // belongs to the goroutine that receives
	slot   *unread.Slot
	tenant string
	agent  atomic.Pointer[string] // nil until it is known
}

// Context is that of the stream, bound to what its tenant may store.
func (s *placedStream) Context() context.Context { return s.ctx }

func (s *placedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil || s.known {
		return err
	}
	s.known = true
	agent := callerOf(s.Context(), m).Agent
	s.agent.Store(&agent)
	if err := s.place.Move(agent); err != nil {
		return fmt.Errorf("server: stream refused: %w", err)
	}
	return nil
}

// owner is whom the stream is charged to.
func (s *placedStream) owner() share.Owner {
	owner := share.Owner{Tenant: s.tenant}
	if agent := s.agent.Load(); agent != nil {
		owner.Agent = *agent
	}
	return owner
}

// SendMsg waits until there is room for the message, and until the transport takes it.
func (s *placedStream) SendMsg(m any) error {
	answer, err := s.slot.Send(s.Context(), int(sizeOf(m)))
	if err != nil {
		return fmt.Errorf("server: stream ended: %w", err)
	}
	if answer == nil {
		return s.ServerStream.SendMsg(m)
	}
	answer.Message = m
	if err := s.ServerStream.SendMsg(answer); err != nil {
		answer.Leave()
		return err
	}
	return nil
}

// workingStream also has a place among the calls that run, but while it waits for its
// client. One goroutine uses it.
type workingStream struct {
	*placedStream
	calls    *share.Pool
	searches *share.Pool    // nil unless it searches
	call     *share.Holding // nil until the first message has come
	search   *share.Holding
	ctx      context.Context // has the places
}

// Context is that of the stream, with the places.
func (s *workingStream) Context() context.Context { return s.ctx }

// RecvMsg waits for a place after the first message.
func (s *workingStream) RecvMsg(m any) error {
	defer share.Pause(s.ctx)()
	if err := s.placedStream.RecvMsg(m); err != nil || s.call != nil {
		return err
	}
	owner := callerOf(s.ctx, m)
	var search *share.Holding
	if s.searches != nil {
		var err error
		if search, err = s.searches.Take(s.ctx, owner, 1); err != nil {
			return fmt.Errorf("server: stream refused: %w", err)
		}
	}
	place, err := s.calls.Take(s.ctx, owner, 1)
	if err != nil {
		search.Leave()
		return fmt.Errorf("server: stream refused: %w", err)
	}
	s.call, s.search, s.ctx = place, search, share.With(share.With(s.ctx, search), place)
	return nil
}

// SendMsg may wait for the reader.
func (s *workingStream) SendMsg(m any) error {
	defer share.Pause(s.ctx)()
	return s.placedStream.SendMsg(m)
}

func (s *workingStream) leave() {
	s.call.Leave()
	s.search.Leave()
}

// callerHeader is where loom.v1 names the agent that calls a tool.
const callerHeader = "x-agent-id"

// callerOf is who a call counts for. An agent that the caller may not act for
// does not count: no one uses up the share of another one.
func callerOf(ctx context.Context, req any) share.Owner {
	id, _ := auth.Of(ctx)
	agent := observe.AgentOf(req)
	if call, ok := req.(*loomv1pb.ToolCall); ok {
		agent = call.GetHeaders()[callerHeader]
	}
	if len(agent) > kv.MaxOwnerBytes || !id.Owns(agent) {
		agent = ""
	}
	return share.Owner{Tenant: id.Tenant(), Agent: agent}
}
