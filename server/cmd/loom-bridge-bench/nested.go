//go:build cgo && !norocksdb

package main

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// nestedTool is a tool of the quiet tenant that calls a tool of the server.
const nestedTool = "quiet:nested"

// provideNested attaches an agent that serves nestedTool until ctx ends.
func (q *quiet) provideNested(ctx context.Context) error {
	stream, err := q.bridge.Attach(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{
		AgentId: "nested", Tools: []*loombridgev1.ProvidedTool{{Name: nestedTool}},
	}}})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil { // it is registered
		return err
	}
	go q.serveNested(ctx, stream)
	return nil
}

func (q *quiet) serveNested(ctx context.Context, stream grpc.BidiStreamingClient[loombridgev1.AttachRequest, loombridgev1.AttachResponse]) {
	var sending sync.Mutex
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		call := m.GetToolCall()
		if call == nil {
			continue
		}
		go func() {
			r, err := q.bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: "nested", Name: "fs:list_dir"})
			sending.Lock()
			defer sending.Unlock()
			_ = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
				CallId: call.GetCallId(), Success: err == nil && r.GetSuccess(),
			}}})
		}()
	}
}

// callNested calls the tool several times at once, and counts those that succeed.
func (q *quiet) callNested(ctx context.Context) {
	const atOnce = 8
	var calls sync.WaitGroup
	errs := make(chan error, atOnce)
	for range atOnce {
		calls.Go(func() {
			r, err := q.bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: "quiet", Name: nestedTool})
			if err == nil && !r.GetSuccess() {
				err = errors.New(r.GetErrorMessage())
			}
			errs <- err
		})
	}
	calls.Wait()
	for range atOnce {
		err := <-errs
		if q.note("nested call", err); err == nil {
			q.nestedOK++
		}
		q.nested++
	}
}
