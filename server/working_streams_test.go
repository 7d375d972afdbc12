package server

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/conduct"
)

// watchedStream notes how many calls run while it waits for its client.
type watchedStream struct {
	grpc.ServerStream
	calls *share.Pool
	held  []int64
}

func (s *watchedStream) Context() context.Context { return context.Background() }

func (s *watchedStream) RecvMsg(any) error {
	s.held = append(s.held, s.calls.Held())
	return nil
}

func (s *watchedStream) SendMsg(any) error { return s.RecvMsg(nil) }

// A stream that works counts as a call that runs, but not while it waits for its
// client; without a place it is refused.
func TestWorkingStreams(t *testing.T) {
	s := &Server{shares: NewShares(Limits{MaxCalls: 1, MaxWaitingCalls: -1}, true)}
	stream := &watchedStream{calls: s.shares.Calls}
	call := func(method string) error {
		return s.limitStreams(nil, stream, &grpc.StreamServerInfo{FullMethod: method}, func(_ any, stream grpc.ServerStream) error {
			for range 2 {
				if err := stream.RecvMsg(&loombridgev1.ReadBlobRequest{AgentId: "a"}); err != nil {
					return err
				}
				watched := s.shares.Calls.Held()
				if want := int64(1); conduct.Of(method).GetWorks() && watched != want {
					t.Errorf("%s: %d calls run, want %d", method, watched, want)
				}
				if err := stream.SendMsg(nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, method := range []string{
		loombridgev1.BlobService_ReadBlob_FullMethodName, loombridgev1.BlobService_SearchBlobs_FullMethodName,
		loombridgev1.SessionService_UploadStep_FullMethodName, loombridgev1.TransferService_Export_FullMethodName,
		loombridgev1.TransferService_Import_FullMethodName,
	} {
		if !conduct.Of(method).GetWorks() {
			t.Errorf("%s takes no place", method)
		}
		if err := call(method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, held := range stream.held {
		if held != 0 {
			t.Errorf("%d calls run while a stream waits for its client", held)
		}
	}
	if held := s.shares.Calls.Held(); held != 0 {
		t.Errorf("%d calls run after all ended", held)
	}
	other, err := s.shares.Calls.TryTake(share.Owner{Tenant: "other"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Leave()
	if err := call(loombridgev1.BlobService_ReadBlob_FullMethodName); !errors.Is(err, share.ErrExhausted) {
		t.Errorf("beside a call that has the only place: %v", err)
	}
	if err := call(loombridgev1.EventService_Subscribe_FullMethodName); err != nil {
		t.Errorf("a stream that waits for events: %v", err)
	}
}
