package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
)

// guardStream runs a stream's handler on its own goroutine and ends the
// stream when the reader stalls, the server shuts down or endStream is called,
// whatever the handler is blocked in: gRPC cancels a stream only when its
// handler returns, so a Send that waits for a dead reader, or a Recv that waits
// for a silent client, would wait for ever.
//
// gRPC drops what is sent while the status of the stream goes out, and says that it was sent
// (grpc-go 1.85, http2Server.write). So the guard waits for a send that is under way, and one
// that takes longer fails.
func (s *Server) guardStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.enterStream(); err != nil {
		return err
	}
	guarded := newGuardedStream(stream)
	defer guarded.end()
	done := make(chan error, 1)
	go func() {
		defer s.handlers.Done()
		done <- next(srv, guarded)
	}()
	ticker := time.NewTicker(max(s.limits.StallTimeout/stallTicks, 1))
	defer ticker.Stop()
	var watch stallWatch
	for {
		select {
		case err := <-done:
			return err
		case err := <-guarded.ended:
			guarded.cancel(err)
			return err
		case <-s.draining:
			guarded.cancel(ErrShuttingDown)
			return ErrShuttingDown
		case <-ticker.C:
			if watch.stalled(guarded.sends.Load()) {
				guarded.cancel(ErrSlowConsumer)
				return fmt.Errorf("%w: nothing taken for %v; resume from the last sequence seen", ErrSlowConsumer, s.limits.StallTimeout)
			}
		}
	}
}

// enterStream counts the handler of a stream or of a forwarded call in, unless the server is
// stopping. Shutdown waits for it.
func (s *Server) enterStream() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrShuttingDown
	}
	s.handlers.Add(1)
	return nil
}

// errCutOff ends a call of another server that outlasts the drain.
var errCutOff = fmt.Errorf("%w: it was stopped under the call, which may have taken effect; make it again with the same request_id", places.ErrLost)

// enterForwarded counts a call that another server forwarded in until leave, unless the server
// is stopping. Shutdown waits for it as for the calls of clients; then its ctx ends.
func (s *Server) enterForwarded(ctx context.Context) (_ context.Context, leave func(), err error) {
	if err := s.enterStream(); err != nil {
		return nil, nil, err
	}
	s.inFlight.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.forwarding, func() { cancel(errCutOff) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.inFlight.Add(-1)
		s.handlers.Done()
	}, nil
}

// lastSend is how long the end of a stream waits for a send that is under way. Only one that
// waits for its reader takes longer, and nothing of that was sent.
const lastSend = 500 * time.Millisecond

// stallTicks is how often within the timeout a stream is looked at. One look
// now and then costs nothing, a timer set for every message costs as much as
// encoding it; the price is that a stall is noticed up to one look late.
const stallTicks = 8

// stallWatch notices that one Send waits for the whole timeout.
type stallWatch struct {
	sends int64
	ticks int
}

// stalled gets the number of beginnings and ends of sends at every tick.
func (w *stallWatch) stalled(sends int64) bool {
	if waiting := sends%2 == 1; !waiting || sends != w.sends {
		w.sends, w.ticks = sends, 0
		return false
	}
	w.ticks++
	return w.ticks >= stallTicks
}

// guardedStream counts what it sends.
type guardedStream struct {
	grpc.ServerStream
	ctx    context.Context // grpc.ServerStream hands its context out by a method
	cancel context.CancelCauseFunc
	ended  chan error // has room for the one error that ends the stream
	// sends counts the beginnings and the ends of SendMsg: odd while one waits.
	sends atomic.Int64
	// sent has a token when a send is through that end waits for. over says that the guard
	// ends the stream without waiting any longer.
	sent chan struct{}
	over atomic.Bool
}

func newGuardedStream(stream grpc.ServerStream) *guardedStream {
	g := &guardedStream{ServerStream: stream, ended: make(chan error, 1), sent: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancelCause(stream.Context())
	g.ctx, g.cancel = context.WithValue(ctx, guardKey{}, g), cancel
	return g
}

type guardKey struct{}

// endStream ends the stream behind ctx with err, also while its handler waits
// for a message, which then fails. The first error given counts. Without a
// guarded stream behind ctx it does nothing.
func endStream(ctx context.Context, err error) {
	g, ok := ctx.Value(guardKey{}).(*guardedStream)
	if !ok {
		return
	}
	select {
	case g.ended <- err:
	default:
	}
}

// guarded reports whether ctx is that of a guarded stream.
func guarded(ctx context.Context) bool {
	_, ok := ctx.Value(guardKey{}).(*guardedStream)
	return ok
}

// Context ends with the stream, and when the guard ends it.
func (g *guardedStream) Context() context.Context { return g.ctx }

// SendMsg blocks while the reader takes nothing, at most for the timeout. Only
// one goroutine may send. An error says that the message may not be sent.
func (g *guardedStream) SendMsg(m any) error {
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	g.sends.Add(1)
	err := g.ServerStream.SendMsg(m)
	g.sends.Add(1)
	if g.ctx.Err() == nil {
		return err
	}
	select {
	case g.sent <- struct{}{}:
	default:
	}
	if err == nil && g.over.Load() {
		err = context.Cause(g.ctx)
	}
	return err
}

// end lets no further send begin, and waits a moment for the one that is under way.
func (g *guardedStream) end() {
	g.cancel(context.Canceled)
	if g.sends.Load()%2 == 1 {
		timer := time.NewTimer(lastSend)
		defer timer.Stop()
		select {
		case <-g.sent:
		case <-timer.C:
		}
	}
	g.over.Store(true)
}
