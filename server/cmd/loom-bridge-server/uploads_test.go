package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// noise is what an upload sends.
func noise(seed uint64, size int) []byte {
	var key [32]byte
	copy(key[:], fmt.Sprint(seed))
	data := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(data) // never fails
	return data
}

// uploadNoise records a result part by part and returns the step's id.
func uploadNoise(ctx context.Context, conn *grpc.ClientConn, seed uint64, size int) (string, error) {
	stream, err := contexts.New(conn).UploadStep(ctx)
	if err != nil {
		return "", err
	}
	err = stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Step{Step: &loombridgev1.RecordStepRequest{
		AgentId: damageAgent, ToolName: "my.tool", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputUpload{OutputUpload: &loombridgev1.ResultUpload{Form: loombridgev1.ResultForm_RESULT_FORM_BYTES}},
	}}})
	for part := range slices.Chunk(noise(seed, size), 1<<20) {
		if err == nil {
			err = stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Data{Data: part}})
		}
	}
	// What ended the stream is told by its answer.
	got, err := stream.CloseAndRecv()
	return got.GetStep().GetId(), err
}

// Steps of an agent are recorded while sixteen uploads of its own never pause.
func TestStepsBesideUploads(t *testing.T) {
	t.Parallel()
	const uploads, steps = 16, 5
	p := MustRun(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	var begun atomic.Int64
	for range uploads {
		clients.Go(func() {
			for ctx.Err() == nil {
				_, err := uploadNoise(ctx, p.conn, uint64(begun.Add(1)), 8<<20)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	waitUntil(t, "all upload", func() bool { return begun.Load() >= uploads })
	for n := range steps {
		_, err := p.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: damageAgent, ToolName: "my.tool", Success: true,
			OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat("a long result\n", 1000+n)},
		})
		if err != nil {
			t.Errorf("step %d: %v", n, err)
		}
	}
}
