package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// guardStream runs a stream's handler on a goroutine of its own and ends the
// stream when the reader stalls or the server shuts down, whatever the handler
// is blocked in: gRPC cancels a stream only when its handler returns, so a
// Send that waits for a dead reader would wait for ever.
func (s *Server) guardStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.enterStream(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	guarded := newGuardedStream(ctx, stream, s.limits.StallTimeout)
	done := make(chan error, 1)
	go func() {
		defer s.handlers.Done()
		done <- next(srv, guarded)
	}()
	defer cancel(context.Canceled)
	select {
	case err := <-done:
		return err
	case <-guarded.stalled:
		cancel(ErrSlowConsumer)
		return fmt.Errorf("%w: nothing taken for %v; resume from the last sequence seen", ErrSlowConsumer, s.limits.StallTimeout)
	case <-s.draining:
		cancel(ErrShuttingDown)
		return ErrShuttingDown
	}
}

// enterStream counts a stream's handler in, unless the server is stopping.
// Shutdown waits for it.
func (s *Server) enterStream() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrShuttingDown
	}
	s.handlers.Add(1)
	return nil
}

// guardedStream notices when one Send takes longer than the timeout.
type guardedStream struct {
	grpc.ServerStream
	ctx     context.Context // grpc.ServerStream hands its context out by a method
	timeout time.Duration
	timer   *time.Timer
	stalled chan struct{}
	told    atomic.Bool
}

func newGuardedStream(ctx context.Context, stream grpc.ServerStream, timeout time.Duration) *guardedStream {
	g := &guardedStream{ServerStream: stream, ctx: ctx, timeout: timeout, stalled: make(chan struct{})}
	g.timer = time.AfterFunc(timeout, g.tell)
	g.timer.Stop()
	return g
}

func (g *guardedStream) tell() {
	if g.told.CompareAndSwap(false, true) {
		close(g.stalled)
	}
}

// Context ends with the stream, and when the guard ends it.
func (g *guardedStream) Context() context.Context { return g.ctx }

// SendMsg blocks while the reader takes nothing, at most for the timeout. Only
// one goroutine may send.
func (g *guardedStream) SendMsg(m any) error {
	g.timer.Reset(g.timeout)
	defer g.timer.Stop()
	return g.ServerStream.SendMsg(m)
}
