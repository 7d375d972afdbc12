package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
)

// A stall is one send that waits through all ticks; sends that come and go are
// none, however long each takes in between.
func TestStallWatch(t *testing.T) {
	var w stallWatch
	ticks := func(n int, sends int64) (stalled bool) {
		for range n {
			stalled = w.stalled(sends)
		}
		return stalled
	}
	if ticks(100, 0) || ticks(100, 2) {
		t.Error("a stream that sends nothing stalled")
	}
	for sends := int64(3); sends < 100; sends += 2 {
		if ticks(stallTicks, sends) {
			t.Fatal("a send that ended stalled")
		}
	}
	if ticks(stallTicks, 101) || !ticks(1, 101) {
		t.Error("a send that does not end is noticed at the wrong tick")
	}
}

func TestEndStreamOutsideAStream(*testing.T) {
	endStream(context.Background(), errors.New("nobody hears"))
}

// sendingStream is a stream whose sends take as long as the test likes.
type sendingStream struct {
	grpc.ServerStream
	ctx     context.Context
	sending chan struct{} // has a token when a send has begun
	send    chan struct{} // closed when sends may end
}

func (s *sendingStream) Context() context.Context { return s.ctx }

func (s *sendingStream) SendMsg(any) error {
	s.sending <- struct{}{}
	<-s.send
	return nil
}

// While a server stops, what a stream says to have sent was sent before the stream's end:
// gRPC drops what comes behind that.
func TestSendsOfAnEndingStream(t *testing.T) {
	for _, test := range []struct {
		name  string
		stuck bool // the send lasts longer than the end waits
	}{{"under way", false}, {"stuck", true}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{draining: make(chan struct{}), limits: Limits{StallTimeout: time.Hour}}
				stream := &sendingStream{ctx: t.Context(), sending: make(chan struct{}, 2), send: make(chan struct{})}
				sent := make(chan error, 2)
				ended := make(chan error, 1)
				go func() {
					ended <- s.guardStream(nil, stream, nil, func(_ any, guarded grpc.ServerStream) error {
						sent <- guarded.SendMsg(nil)
						sent <- guarded.SendMsg(nil)
						return nil
					})
				}()
				<-stream.sending
				close(s.draining)
				synctest.Wait()
				if len(ended) > 0 {
					t.Fatal("the stream ended under a send")
				}
				if test.stuck {
					time.Sleep(time.Minute)
					if len(ended) == 0 {
						t.Error("the stream does not end while a send waits for its reader")
					}
				}
				close(stream.send)
				if err := <-sent; (err != nil) != test.stuck {
					t.Errorf("the send under way: %v", err)
				}
				if err := <-sent; !errors.Is(err, ErrShuttingDown) || len(stream.sending) > 0 {
					t.Errorf("a send after the end: %v", err)
				}
				if err := <-ended; !errors.Is(err, ErrShuttingDown) {
					t.Errorf("the stream ended with %v", err)
				}
				s.handlers.Wait()
			})
		})
	}
}
