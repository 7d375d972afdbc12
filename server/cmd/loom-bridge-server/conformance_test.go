package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// MustServeLoom starts the binary as the project's own fixture does: nothing
// but an address, and pipes that nobody reads; the port opens within 5 s.
func MustServeLoom(tb testing.TB, dir string) (*exec.Cmd, *grpc.ClientConn) {
	tb.Helper()
	address := freeAddress(tb)
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), asServer+"=1", "LOOM_BRIDGE_ADDR="+address)
	for _, pipe := range []func() (io.ReadCloser, error){cmd.StdoutPipe, cmd.StderrPipe} {
		_, err := pipe()
		must(tb, err)
	}
	must(tb, cmd.Start())
	tb.Cleanup(func() { _ = cmd.Process.Kill() })
	deadline := time.Now().Add(waitTime)
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			must(tb, conn.Close())
			return cmd, MustDial(tb, address)
		}
		if time.Now().After(deadline) {
			tb.Fatal("the port did not open")
		}
		time.Sleep(10 * time.Millisecond) // another process: nothing to wait on
	}
}

// 7.1: the fixture, and an agent that hears its own publish.
func TestConformance71Fixture(t *testing.T) {
	cmd, conn := MustServeLoom(t, t.TempDir())
	bridge := loomv1pb.NewBridgeClient(conn)
	for range 3 {
		beat, err := bridge.Heartbeat(t.Context(), &loomv1pb.HeartbeatRequest{})
		must(t, err)
		if beat.GetStatus() != "ok" || beat.GetTimestampMs() < 0 {
			t.Errorf("heartbeat %v", beat)
		}
	}
	registered, err := bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{AgentId: "a", SubscribedTopics: []string{"t"}})
	must(t, err)
	if !registered.GetSuccess() {
		t.Fatal(registered)
	}
	stream, err := bridge.EventStream(t.Context())
	must(t, err)
	must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: "a"}}}))
	must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{
		Publish: &loomv1pb.Publish{Topic: "t", Event: &loomv1pb.Event{Id: "e", Type: "kind", Payload: []byte("p")}},
	}}))
	got, err := stream.Recv()
	must(t, err)
	if d := got.GetDelivery(); d.GetTopic() != "t" || d.GetEvent().GetType() != "kind" || string(d.GetEvent().GetPayload()) != "p" {
		t.Errorf("delivered %v", got)
	}
	stopping := time.Now()
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil || time.Since(stopping) > stopLimit {
		t.Errorf("stopped with %v after %v", err, time.Since(stopping))
	}
}

// 7.4: plans, executions and lines survive SIGTERM and kill.
func TestConformance74MemorySurvivesSigtermAndKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, conn := MustServeLoom(t, dir)
	memory := loomv1pb.NewMemoryServiceClient(conn)
	_, err := memory.SavePlan(t.Context(), &loomv1pb.SavePlanRequest{
		SessionId: "s", Plan: &loomv1pb.PlanRecord{Symbol: "BTC", Action: "BUY", Confidence: 0.85, PlanHash: "h"},
	})
	must(t, err)
	_, err = memory.MarkExecuted(t.Context(), &loomv1pb.MarkExecutedRequest{SessionId: "s", PlanHash: "h"})
	must(t, err)
	_, err = memory.AppendEvent(t.Context(), &loomv1pb.MemoryWriteRequest{
		SessionId: "s", Event: &loomv1pb.Event{Type: "trade", Source: "python", TimestampMs: 7},
	})
	must(t, err)
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		must(t, cmd.Process.Signal(end))
		_ = cmd.Wait()
		cmd, conn = MustServeLoom(t, dir)
		memory = loomv1pb.NewMemoryServiceClient(conn)
		plans, err := memory.GetRecentPlans(t.Context(), &loomv1pb.GetRecentPlansRequest{SessionId: "s", Symbol: "BTC", Limit: 5})
		must(t, err)
		done, err := memory.CheckExecuted(t.Context(), &loomv1pb.CheckExecutedRequest{SessionId: "s", PlanHash: "h"})
		must(t, err)
		lines, err := memory.Retrieve(t.Context(), &loomv1pb.MemoryRetrieveRequest{SessionId: "s", K: -1})
		must(t, err)
		if len(plans.GetPlans()) != 1 || !done.GetIsExecuted() || len(lines.GetResults()) != 1 {
			t.Errorf("after %v: %v, %v, %v", end, plans, done, lines)
		}
	}
}

// 7.4: the default bind is loopback.
func TestConformance74DefaultBindIsLoopback(t *testing.T) {
	t.Parallel()
	host, _, err := net.SplitHostPort(NewConfig().Addr)
	must(t, err)
	listener, err := listen("addr", net.JoinHostPort(host, "0"))
	must(t, err)
	defer listener.Close()
	if !local(listener.Addr()) {
		t.Errorf("listens on %v", listener.Addr())
	}
}

// Other machines are served without credentials only when that is asked for.
func TestTrustNetwork(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--addr", "0.0.0.0:0", "--trust-network")
	_, port, err := net.SplitHostPort(p.Address)
	must(t, err)
	save(t, &process{conn: MustDial(t, net.JoinHostPort("127.0.0.1", port))}, "open")
}
