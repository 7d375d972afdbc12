package main

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// loom.v1 acknowledges no publish: what a server has read when it stops it stores, and what
// waits in the network then, up to a window of 64 KB, nobody was told of. A ping is answered in
// the order of what was read, so whatever an agent published before an answered ping is there
// after a SIGTERM in the thick of publishing, once and in order.
//
// E8
func TestAnsweredPublishesSurviveSigterm(t *testing.T) {
	t.Parallel()
	const (
		each     = 20  // publishes before a ping
		ahead    = 10  // pings that wait for their answers
		answered = 100 // pings, and then the server is stopped
	)
	dir := t.TempDir()
	cmd, conn := MustServeLoom(t, dir)
	stream, err := loomv1pb.NewBridgeClient(conn).EventStream(t.Context())
	must(t, err)
	must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: "a"}}}))
	sent, room := make(chan int, 1), make(chan struct{}, ahead)
	go func() {
		n := 0
		defer func() { sent <- n }()
		for ; ; n++ {
			event := &loomv1pb.Event{Id: fmt.Sprint(n), Type: "kind", Payload: make([]byte, 1<<10)}
			if stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{Publish: &loomv1pb.Publish{Topic: "stop.told", Event: event}}}) != nil {
				return
			}
			if n%each < each-1 {
				continue
			}
			if stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ping{Ping: &loomv1pb.HeartbeatRequest{}}}) != nil {
				return
			}
			select {
			case room <- struct{}{}:
			case <-stream.Context().Done():
				n++
				return
			}
		}
	}()
	pongs := 0
	for {
		m, err := stream.Recv()
		if err != nil {
			break
		}
		if m.GetPong() == nil {
			t.Fatalf("heard %v", m)
		}
		<-room
		if pongs++; pongs == answered {
			must(t, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	if err := cmd.Wait(); err != nil || pongs < answered {
		t.Fatalf("stopped with %v after %d answers", err, pongs)
	}
	published := <-sent
	_, conn = MustServeLoom(t, dir)
	kept := mustReadTopic(t, conn, "stop.told")
	for i, id := range kept {
		if id != fmt.Sprint(i) {
			t.Fatalf("event %d of those kept is %s", i, id)
		}
	}
	t.Logf("%d published, %d before an answered ping, %d kept", published, pongs*each, len(kept))
	if len(kept) < pongs*each {
		t.Errorf("%d events were published before an answered ping, %d are there", pongs*each, len(kept))
	}
}

// mustReadTopic returns the ids of the events that a topic keeps.
func mustReadTopic(tb testing.TB, conn *grpc.ClientConn, topic string) []string {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	client := loombridgev1.NewEventServiceClient(conn)
	now, err := client.Subscribe(ctx, &loombridgev1.SubscribeRequest{AgentId: "reader", Topics: []*loombridgev1.TopicPosition{{Topic: topic}}})
	must(tb, err)
	ready, err := now.Recv()
	must(tb, err)
	end := ready.GetReady().GetPositions()[0].GetAfterSequence()
	all, err := client.Subscribe(ctx, &loombridgev1.SubscribeRequest{AgentId: "reader", Topics: []*loombridgev1.TopicPosition{{Topic: topic, AfterSequence: new(int64(0))}}})
	must(tb, err)
	var ids []string
	for last := int64(0); last < end; {
		m, err := all.Recv()
		must(tb, err)
		if d := m.GetEvent(); d != nil {
			ids, last = append(ids, d.GetId()), d.GetSequence()
		}
	}
	return ids
}
