package server_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// An engine that keeps the contract and none of the optional interfaces is enough for
// everything that is stored: memory, steps, blobs and events.
func TestAnEngineOfTheContractAloneServes(t *testing.T) {
	behind := memkv.New(nil)
	t.Cleanup(func() { must(t, behind.Close()) })
	var engine kv.Engine = kvtest.Faulty(behind, kvtest.FailurePlan{})
	for name, optional := range map[string]bool{
		"Checkpointer": is[kv.Checkpointer](engine), "Notifier": is[kv.Notifier](engine), "Sweeper": is[kv.Sweeper](engine),
		"Verifier": is[kv.Verifier](engine), "RangeDropper": is[kv.RangeDropper](engine), "Sizer": is[kv.Sizer](engine),
		"Monitored": is[kv.Monitored](engine),
	} {
		if optional {
			t.Errorf("the engine is a %s, so the test shows nothing", name)
		}
	}
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	writeOfEach(t, s)
	readOfEach(t, s)
	MustCollect(t, s, false)
	readOfEach(t, s)
}

func is[T any](engine kv.Engine) bool { _, ok := engine.(T); return ok }

// Two bridges on one store: what one is told the other knows at once, and events reach
// those who listen at the other.
func TestTwoBridgesOnOneStore(t *testing.T) {
	peers := kvtest.Peers(2)
	var bridges []*servertest.Server
	for _, peer := range peers {
		t.Cleanup(func() { must(t, peer.Close()) })
		bridges = append(bridges, servertest.Start(t, &servertest.Options{Engine: peer}))
	}
	stream, _ := MustSubscribe(t, t.Context(), bridges[1].Events, &loombridgev1.SubscribeRequest{
		AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
	})
	writeOfEach(t, bridges[0])
	readOfEach(t, bridges[1])
	if got := MustNext(t, stream).GetEvent().GetTopic(); got != "news" {
		t.Errorf("got an event on %q, want news", got)
	}
}

// writeOfEach stores a record, a step with a blob, and an event.
func writeOfEach(t *testing.T, s *servertest.Server) {
	t.Helper()
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "The green tea is out of stock"})
	MustOffload(t, s, "s", textAbout("green tea"))
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "news"})
}

// readOfEach finds what writeOfEach stored.
func readOfEach(t *testing.T, s *servertest.Server) {
	t.Helper()
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "green tea"})
	must(t, err)
	if len(found.GetHits()) != 1 {
		t.Errorf("found %d records, want one", len(found.GetHits()))
	}
	steps, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	if len(steps.GetSteps()) != 1 {
		t.Errorf("listed %d steps, want one", len(steps.GetSteps()))
	}
	if err := readError(t, s, "step_001"); err != nil {
		t.Errorf("read the blob: %v", err)
	}
	stream, _ := MustSubscribe(t, t.Context(), s.Events, &loombridgev1.SubscribeRequest{
		AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: new(int64(0))}},
	})
	if got := MustNext(t, stream).GetEvent().GetTopic(); got != "news" {
		t.Errorf("got an event on %q, want news", got)
	}
}
