package main

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// aside reports whether nobody waits for a round trip: the end of a view, the look at the
// session that holds the store, notifications, and the record of a prompt, which is written
// after the answer.
func aside(trip string) bool {
	return trip == "ROLLBACK" || strings.Contains(trip, "pg_is_in_recovery") || strings.HasPrefix(trip, "SELECT pg_notify") ||
		strings.HasPrefix(trip, "SELECT set_config('synchronous_commit', 'off'")
}

// tripsOf is how many round trips a call waits for when it was made before: the fewest of
// several, since what the server does by itself may fall among them.
func tripsOf(t *testing.T, trace *pgtest.Trace, most int, call func(i int) error) (fewest []string) {
	t.Helper()
	end := time.Now().Add(waitTime)
	for i := 0; i < 12 || len(fewest) > most && time.Now().Before(end); i++ {
		trace.Take()
		must(t, call(i))
		trips := slices.DeleteFunc(trace.Take(), aside)
		if i > 2 && (fewest == nil || len(trips) < len(fewest)) {
			fewest = trips
		}
	}
	return fewest
}

// Calls wait for no more round trips to PostgreSQL than they need; one that is added shows
// here.
//
// Z22
func TestPostgresRoundTrips(t *testing.T) {
	t.Parallel()
	trace, err := pgtest.StartTrace(postgresPlace(t, pgtest.Address(t)))
	must(t, err)
	t.Cleanup(func() { _ = trace.Close() })
	p := MustRun(t, t.TempDir(), "--store", trace.Address)
	work(t, p, 20)
	for _, c := range []struct {
		name string
		most int
		call func(i int) error
	}{
		{"MemorySave", 2, func(i int) error {
			_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: fmt.Sprint("tide ", i)})
			return err
		}},
		{"MemoryQuery", 2, func(int) error {
			_, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "moon"})
			return err
		}},
		{"Emit", 2, func(int) error {
			_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
				AgentId: "a", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("next")},
			})
			return err
		}},
		{"RecordStep", 3, func(i int) error {
			_, err := p.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
				AgentId: "a", SessionId: "s1", ToolName: "web:search", Success: true,
				ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"query":"%d"}`, i)},
				OutputForm:    &loombridgev1.RecordStepRequest_OutputText{OutputText: "short"},
			})
			return err
		}},
		{"Assemble", 1, func(int) error {
			_, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s1", Goal: "tides"})
			return err
		}},
	} {
		trips := tripsOf(t, trace, c.most, c.call)
		t.Logf("%s: %d round trips", c.name, len(trips))
		if len(trips) > c.most {
			t.Errorf("%s waits for %d round trips, not %d:\n  %s", c.name, len(trips), c.most, strings.Join(trips, "\n  "))
		}
	}
}

// A call that asks on its way, in a round trip that it makes anyway, whether its agent still
// acts, is refused all the same once the agent has ended, and leaves nothing behind.
//
// Z17
func TestPostgresEndedChild(t *testing.T) {
	t.Parallel()
	place := postgresPlace(t, pgtest.Address(t))
	a, b := MustRun(t, t.TempDir(), "--store", place), MustRun(t, t.TempDir(), "--store", place)
	_, err := a.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "parent", ChildId: "child", Goal: "look", Limits: unhurried})
	must(t, err)
	calls := map[string]func(p *process) error{
		"MemorySave": func(p *process) error {
			_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "child", Text: "tide", RequestId: rand.Text()})
			return err
		},
		"Emit": func(p *process) error {
			_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
				AgentId: "child", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("next")},
			})
			return err
		},
		"volatile Emit": func(p *process) error {
			_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
				AgentId: "child", Topic: "news", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE,
				PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("next")},
			})
			return err
		},
		"RecordStep": func(p *process) error {
			_, err := p.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
				AgentId: "child", ToolName: "web:search", Success: true,
				OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: "short"},
			})
			return err
		},
		"Assemble": func(p *process) error {
			_, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "child", Goal: "tides"})
			return err
		},
	}
	for name, call := range calls {
		for _, p := range []*process{a, b} {
			if err := call(p); err != nil {
				t.Errorf("%s of a child: %v", name, err)
			}
		}
	}
	_, err = a.context().CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "child", TaskId: "child", Conclusion: "done"})
	must(t, err)
	left := func() string {
		records, err := a.memory().ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "child"})
		must(t, err)
		steps, err := a.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "child"})
		must(t, err)
		return fmt.Sprintf("%d records, %d steps", len(records.GetRecords()), len(steps.GetSteps()))
	}
	before := left()
	for name, call := range calls {
		for bridge, p := range map[string]*process{"its own": a, "the other": b} {
			if err := call(p); reasonOf(err) != "AGENT_ENDED" {
				t.Errorf("%s of one that has ended, on %s bridge: %v", name, bridge, err)
			}
		}
	}
	if now := left(); now != before {
		t.Errorf("refused calls left %s, where there were %s", now, before)
	}
}
