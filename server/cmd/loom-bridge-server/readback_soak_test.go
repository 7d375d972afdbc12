package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A21, Q08: whatever was acknowledged reads back byte for byte, by every name it
// was given, after the server was killed.
func TestSoakReadBackAfterKillNine(t *testing.T) {
	t.Parallel()
	binary, data, workspace := mustBuild(t), filepath.Join(t.TempDir(), "store"), t.TempDir()
	r := &reader{agent: "reader", want: map[string]string{}, random: rand.New(rand.NewPCG(7, 7))}
	for range soakRoundsOr(t, 2) {
		process, addr := mustStart(t, binary, "--addr", "127.0.0.1:0", "--data-dir", data, "--workspace", workspace, "--log-level", "error")
		var killing sync.WaitGroup
		killing.Go(func() {
			liveFor(400*time.Millisecond, r.shown.Load)
			_ = process.Process.Kill()
		})
		if err := r.record(mustDial(t, addr)); !died(err) {
			t.Error(err)
		}
		killing.Wait()
		process.Wait() //nolint:errcheck // it was killed
	}
	process, addr := mustStart(t, binary, "--addr", "127.0.0.1:0", "--data-dir", data, "--workspace", workspace, "--log-level", "error")
	r.verify(t, mustDial(t, addr))
	_ = process.Process.Kill()
	process.Wait() //nolint:errcheck // it was killed
	t.Logf("%d names read back", len(r.want))
}

// reader is an agent that records, and what it may read back by which name.
type reader struct {
	agent  string
	want   map[string]string
	random *rand.Rand
	shown  atomic.Bool // a long result and a message were acknowledged
}

// text is of any length that one value may have.
func (r *reader) text() string {
	line := fmt.Sprintf("line %x of a résumé\n", r.random.Uint64())
	return strings.Repeat(line, []int{1, 20, 1000, 25_000}[r.random.IntN(4)])
}

// record goes on until the server has gone, and notes what was acknowledged.
func (r *reader) record(conn *grpc.ClientConn) error {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), soakDeadline)
	defer cancel()
	for client := contexts.New(conn); ; {
		text := r.text()
		step, err := client.RecordStep(ctx, &loombridgev1.RecordStepRequest{
			AgentId: r.agent, ToolName: "my.tool", Success: true,
			OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: text},
		})
		if err != nil {
			return err
		}
		if blob := step.GetOutputBlob(); blob != nil {
			r.want[step.GetStep().GetId()], r.want[blob.GetRef()], r.want[blob.GetPath()] = text, text, text
		}
		said, err := client.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{
			AgentId: r.agent, Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: text}},
		})
		if err != nil {
			return err
		}
		r.want[fmt.Sprintf("message_%03d", said.GetPositions()[0])] = text
		if step.GetOutputBlob() != nil {
			r.shown.Store(true)
		}
	}
}

func (r *reader) verify(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	defer conn.Close()
	client := contexts.New(conn)
	for name, want := range r.want {
		if got, err := r.read(t.Context(), client, name); err != nil || got != want {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(want), err)
		}
	}
	if !r.shown.Load() {
		t.Error("nothing was acknowledged, so nothing was shown")
	}
}

func (r *reader) read(ctx context.Context, client contexts.Client, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, soakDeadline)
	defer cancel()
	stream, err := client.ReadBlob(ctx, &loombridgev1.ReadBlobRequest{AgentId: r.agent, Name: name})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for {
		piece, err := stream.Recv()
		if err == io.EOF { //nolint:errorlint // grpc returns it bare
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		all.Write(piece.GetData())
	}
}
