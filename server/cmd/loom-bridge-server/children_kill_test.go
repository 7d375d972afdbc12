package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The family of a storm: so many parents spawn so many children each, which return, while
// the server is killed again and again.
const (
	stormParents  = 8
	stormChildren = 12
)

// family spawns and returns until everything is acknowledged, whatever becomes of the
// server.
type family struct {
	contexts atomic.Pointer[contexts.Client]
	acked    chan struct{}
}

// until makes a call again and again until it is acknowledged.
func (f *family) until(ctx context.Context, call func(c contexts.Client) error) {
	for ctx.Err() == nil {
		if call(*f.contexts.Load()) == nil {
			f.acked <- struct{}{}
			return
		}
	}
}

// live is the life of one parent and its children.
func (f *family) live(ctx context.Context, parent string) {
	for n := range stormChildren {
		child := fmt.Sprint(parent, "-", n)
		f.until(ctx, func(c contexts.Client) error {
			_, err := c.SpawnAgent(ctx, &loombridgev1.SpawnAgentRequest{AgentId: parent, ChildId: child, Goal: "goal of " + child, RequestId: "spawn " + child})
			return err
		})
		f.until(ctx, func(c contexts.Client) error {
			_, err := c.CompleteTask(ctx, &loombridgev1.CompleteTaskRequest{AgentId: child, TaskId: child, Conclusion: "result of " + child})
			return err
		})
	}
}

// Whenever the server is killed, a child was spawned or not, and has one result: one step
// each in its parent's history, one event each, one message in its own session.
//
// C04, C06, P19
func TestChildrenOfAKilledServerSoak(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &family{acked: make(chan struct{}, stormParents)}
	start := func() *child {
		c := MustStartChild(t, dir)
		client := contexts.New(MustDial(t, c.Address))
		f.contexts.Store(&client)
		return c
	}
	c := start()
	var parents sync.WaitGroup
	for i := range stormParents {
		parents.Go(func() { f.live(t.Context(), fmt.Sprint("p", i)) })
	}
	const all = 2 * stormParents * stormChildren
	for n := range all {
		<-f.acked
		if every := all / (stormKills + 1); n%every == every-1 && n < all-1 {
			must(t, c.Process.Kill())
			_ = c.Wait()
			c = start()
		}
	}
	parents.Wait()
	must(t, c.Process.Kill())
	_ = c.Wait()
	c = start()
	events := loombridgev1.NewEventServiceClient(MustDial(t, c.Address))
	for i := range stormParents {
		parent := fmt.Sprint("p", i)
		f.check(t, parent)
		results := toldOf(t, events, parent, "agent."+parent+".results", stormChildren)
		for n := range stormChildren {
			child := fmt.Sprint(parent, "-", n)
			if results[child] != 1 {
				t.Errorf("%s was told %d times of %s", parent, results[child], child)
			}
			toldOf(t, events, child, "agent."+child+".spawn", 1)
		}
	}
}

// check compares the history of a parent with what its children did.
func (f *family) check(t *testing.T, parent string) {
	t.Helper()
	contexts := *f.contexts.Load()
	steps, err := contexts.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: parent, PageSize: 1000})
	must(t, err)
	counts := map[string]int{}
	for _, step := range steps.GetSteps() {
		counts[step.GetObservation()]++
	}
	for n := range stormChildren {
		child := fmt.Sprint(parent, "-", n)
		if counts["Spawned sub-agent "+child] != 1 || counts["Received sub result from "+child] != 1 {
			t.Errorf("%s: spawned %d, received %d", child, counts["Spawned sub-agent "+child], counts["Received sub result from "+child])
		}
	}
	if len(steps.GetSteps()) != 2*stormChildren {
		t.Errorf("%s has %d steps", parent, len(steps.GetSteps()))
	}
	got, err := contexts.WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: parent})
	must(t, err)
	if len(got.GetPending()) > 0 || len(got.GetChildren()) != stormChildren {
		t.Errorf("%s has %d children, complete %v", parent, len(got.GetChildren()), len(got.GetPending()) == 0)
	}
	for _, child := range got.GetChildren() {
		said, err := contexts.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: child.GetChildId(), SessionId: child.GetSessionId()})
		must(t, err)
		if all := said.GetEntries(); len(all) != 1 || all[0].GetMessage().GetContent() != "Goal: goal of "+child.GetChildId() || child.GetResult() != "result of "+child.GetChildId() {
			t.Errorf("%s: %v", child.GetChildId(), all)
		}
	}
}

// toldOf reads so many events of a topic from its beginning, and counts them by their
// sources.
func toldOf(t *testing.T, events loombridgev1.EventServiceClient, agent, topic string, n int) map[string]int {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stream, err := events.Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: topic, AfterSequence: new(int64(0))}},
	})
	must(t, err)
	sources := map[string]int{}
	for seen := 0; seen < n; {
		got, err := stream.Recv()
		must(t, err)
		if e := got.GetEvent(); e != nil {
			if seen++; e.GetSequence() != int64(seen) {
				t.Errorf("%s: event %d has the sequence %d", topic, seen, e.GetSequence())
			}
			sources[e.GetSource()]++
		}
	}
	return sources
}
