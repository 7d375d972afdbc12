package loomv1_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// What an agent was sent it is not sent again, also where the stream ends between
// the send and the note of it.
func TestConformance74EndBehindASend(t *testing.T) {
	for name, end := range map[string]func(*rawStream){
		"cancelled": func(s *rawStream) { s.cancel() },
		"cut":       func(s *rawStream) { s.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			var a *rawStream
			var once atomic.Bool
			sent := func(ctx context.Context, message any) {
				event, ok := message.(*loomv1pb.ServerEvent)
				if !ok || event.GetDelivery().GetEvent().GetId() != "seen" || !once.CompareAndSwap(false, true) {
					return
				}
				<-a.events // the agent has it
				end(a)
				<-ctx.Done()
				time.Sleep(20 * time.Millisecond) // the sender is slow to go on
			}
			w := MustLoom(t, loomOptions{Sent: sent})
			w.register("a", "work.new")
			a = w.open("a")
			w.publish("work.new", "seen")
			settled(t, "the stream's end", func() bool { return w.ended.Load() == 1 })
			w.publish("work.new", "missed")
			again := w.open("a")
			if got := again.ids(1); got[0] != "missed" {
				t.Errorf("got %v", got)
			}
		})
	}
}

// heldEngine holds up commits while it is told to.
type heldEngine struct {
	kv.Engine
	held    atomic.Bool
	release chan struct{}
	began   chan struct{}
}

func (e *heldEngine) Commit(ctx context.Context, c kv.Commit) error {
	if e.held.CompareAndSwap(true, false) {
		close(e.began)
		<-e.release
	}
	return e.Engine.Commit(ctx, c)
}

// An agent that goes away while its gap is taken finds it when it is back.
func TestConformance74GoneWhileTheGapIsTaken(t *testing.T) {
	engine := &heldEngine{Engine: memkv.New(nil), release: make(chan struct{}), began: make(chan struct{})}
	t.Cleanup(func() { mustBe(t, engine.Close()) })
	w, clock, a := gapWorld(t, loomOptions{Engine: engine}, "work.new")
	engine.held.Store(true)
	a.cut()
	await(t, engine.began) // the store is slow
	w.publish("work.new", "missed")
	clock.add(time.Second)
	gone := w.connect()
	gone.send(ackOf("a"))
	w.streams("a", 1)
	time.Sleep(quiet) // it waits for the store
	gone.cancel()
	time.Sleep(quiet) // the server hears of it
	close(engine.release)
	settled(t, "both have ended", func() bool { return w.ended.Load() == 2 })
	if got := w.open("a").ids(1); got[0] != "missed" {
		t.Errorf("got %v", got)
	}
	if text := w.log.String(); strings.Contains(text, "gap not taken") {
		t.Errorf("logged %s", text)
	}
}

// A list of tools that is too large is refused with the limit, and one that
// nobody waits for ends.
func TestListToolsTooLarge(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	for i := range agents.DefaultMaxTenantToolBytes / agents.DefaultMaxToolBytes {
		id := fmt.Sprint("agent", i)
		_, err := w.Agents.Register("default", id, agents.Registration{
			Tools: []agents.ProvidedTool{{Name: id, Schema: strings.Repeat("s", agents.DefaultMaxToolBytes-128)}},
		})
		mustBe(t, err)
		link, err := w.Agents.Open("default", id, agents.OpenOptions{})
		mustBe(t, err)
		t.Cleanup(link.Close)
	}
	conn, _ := w.dial()
	_, err := loomv1pb.NewToolServiceClient(conn).ListTools(t.Context(), &loomv1pb.ListToolsRequest{})
	wantCode(t, "list", err, codes.ResourceExhausted, "exceeds the limit of 4128768")
}
