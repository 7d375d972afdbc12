package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// aside tells whether nobody waits for a round trip: the end of a view, and the look at the
// session that holds the store.
func aside(trip string) bool {
	return trip == "ROLLBACK" || strings.Contains(trip, "pg_is_in_recovery")
}

// tripsOf is how many round trips a call waits for when it was made before: the fewest of
// several, since what the server does by itself may fall among them.
func tripsOf(t *testing.T, trace *pgtest.Trace, call func(i int) error) (fewest []string) {
	t.Helper()
	for i := range 12 {
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
	postgres := mustStartPostgres(t)
	trace, err := pgtest.StartTrace(postgresPlace(t, postgres.Address))
	must(t, err)
	t.Cleanup(func() { _ = trace.Close() })
	p := MustRun(t, t.TempDir(), "--store", trace.Address)
	work(t, p, 20)
	for _, c := range []struct {
		name string
		most int
		call func(i int) error
	}{
		{"MemorySave", 3, func(i int) error {
			_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: fmt.Sprint("tide ", i)})
			return err
		}},
		{"MemoryQuery", 4, func(int) error {
			_, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "moon"})
			return err
		}},
		{"Emit", 4, func(int) error {
			_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
				AgentId: "a", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("next")},
			})
			return err
		}},
		{"RecordStep", 6, func(i int) error {
			_, err := p.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
				AgentId: "a", SessionId: "s1", ToolName: "web:search", Success: true,
				ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"query":"%d"}`, i)},
				OutputForm:    &loombridgev1.RecordStepRequest_OutputText{OutputText: "short"},
			})
			return err
		}},
		{"Assemble", 26, func(int) error {
			_, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s1", Goal: "tides"})
			return err
		}},
	} {
		trips := tripsOf(t, trace, c.call)
		t.Logf("%s: %d round trips", c.name, len(trips))
		if len(trips) > c.most {
			t.Errorf("%s waits for %d round trips, not %d:\n  %s", c.name, len(trips), c.most, strings.Join(trips, "\n  "))
		}
	}
}
