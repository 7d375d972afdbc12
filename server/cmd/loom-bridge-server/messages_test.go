package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// The direct messages of a storm: so many senders say so many things to each target, while
// the server is killed again and again.
const (
	stormSenders = 64
	stormTargets = 8
	stormEach    = 3
	stormKills   = 3
)

// storm sends until everything is acknowledged, whatever becomes of the server.
type storm struct {
	events atomic.Pointer[loombridgev1.EventServiceClient]
	acked  chan struct{}
}

// send sends the messages of one sender, each again until it is acknowledged.
func (s *storm) send(ctx context.Context, sender int) {
	for n := range stormEach {
		for _, target := range rand.Perm(stormTargets) {
			priority := float64((sender+n)%5) / 4
			r := &loombridgev1.SendMessageRequest{
				AgentId: fmt.Sprint("s", sender), Message: &loombridgev1.DirectMessage{
					TargetAgentId: fmt.Sprint("t", target), TaskId: fmt.Sprintf("%d-%d", sender, n),
					Content: fmt.Sprintf("%d to %d, %d", sender, target, n), Priority: &priority,
				},
			}
			for ctx.Err() == nil {
				if _, err := (*s.events.Load()).SendMessage(ctx, r); err == nil {
					s.acked <- struct{}{}
					break
				}
			}
		}
	}
}

// Sixty-four senders and eight targets, and a server that is killed in between: every
// message is there once, in order, and each target was told of each once.
//
// C09, C16, P28
func TestMessagesOfAKilledServerSoak(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &storm{acked: make(chan struct{}, stormSenders)}
	start := func() *child {
		c := MustStartChild(t, dir)
		client := loombridgev1.NewEventServiceClient(MustDial(t, c.Address))
		s.events.Store(&client)
		return c
	}
	c := start()
	var senders sync.WaitGroup
	for i := range stormSenders {
		senders.Go(func() { s.send(t.Context(), i) })
	}
	const all = stormSenders * stormTargets * stormEach
	for n := range all {
		<-s.acked
		if every := all / (stormKills + 1); n%every == every-1 && n < all-1 {
			must(t, c.Process.Kill())
			_ = c.Wait()
			c = start()
		}
	}
	senders.Wait()
	must(t, c.Process.Kill())
	_ = c.Wait()
	start()
	for target := range stormTargets {
		id := fmt.Sprint("t", target)
		got, err := (*s.events.Load()).ListMessages(t.Context(), &loombridgev1.ListMessagesRequest{AgentId: id, PageSize: 1000})
		must(t, err)
		seen := make(map[string]bool)
		for i, m := range got.GetMessages() {
			if seen[m.GetTaskId()] || m.GetTargetAgentId() != id {
				t.Errorf("%s has %v", id, m)
			}
			seen[m.GetTaskId()] = true
			if i > 0 && later(got.GetMessages()[i-1], m) {
				t.Errorf("%s: %v stands before %v", id, got.GetMessages()[i-1], m)
			}
		}
		if len(seen) != stormSenders*stormEach {
			t.Errorf("%s has %d messages", id, len(seen))
		}
		s.checkTold(t, id, seen)
	}
}

// later reports whether a message belongs behind the other.
func later(a, b *loombridgev1.DirectMessage) bool {
	if a.GetPriority() != b.GetPriority() {
		return a.GetPriority() < b.GetPriority()
	}
	return a.GetCreateTime().AsTime().Before(b.GetCreateTime().AsTime())
}

// checkTold reads what a target was told from the beginning.
func (s *storm) checkTold(t *testing.T, id string, want map[string]bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stream, err := (*s.events.Load()).Subscribe(convert.AskText(ctx), &loombridgev1.SubscribeRequest{
		AgentId: id, Topics: []*loombridgev1.TopicPosition{{Topic: "agent." + id + ".messages", AfterSequence: new(int64(0))}},
	})
	must(t, err)
	told := make(map[string]bool)
	for len(told) < len(want) {
		got, err := stream.Recv()
		must(t, err)
		event := got.GetEvent()
		if event == nil {
			continue
		}
		var task struct {
			TaskID string `json:"task_id"`
		}
		must(t, json.Unmarshal([]byte(event.GetPayloadJson()), &task))
		if told[task.TaskID] || !want[task.TaskID] || event.GetSequence() != int64(len(told)+1) {
			t.Errorf("%s was told %v", id, event)
		}
		told[task.TaskID] = true
	}
}
