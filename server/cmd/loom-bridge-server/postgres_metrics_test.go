package main

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The metrics of a server on PostgreSQL tell its connections, within the number that it was
// given, its commits and what became of them, by store and server.
//
// Z24
func TestPostgresMetrics(t *testing.T) {
	t.Parallel()
	store, err := url.Parse(postgresPlace(t, pgtest.Address(t)))
	must(t, err)
	query := store.Query()
	schema := query.Get("schema")
	query.Set("connections", "14")
	store.RawQuery = query.Encode()
	p, address := MustMeasure(t, t.TempDir(), "--store", store.String(), "--bridge-name", "pier")
	before := scrape(t, address)
	for i := range 20 {
		save(t, p, fmt.Sprint("tide ", i))
	}
	_, err = p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "tide"})
	must(t, err)
	after, labels := scrape(t, address), fmt.Sprintf(`bridge="pier"%%sstore="%s"}`, schema)
	name := func(metric, more string) string {
		return "loom_bridge_postgres_" + metric + "{" + fmt.Sprintf(labels, more)
	}
	for _, pool := range []struct {
		name string
		most float64
	}{{"calls", 3}, {"views", 9}} {
		if most := after[name("connections_most", `,pool="`+pool.name+`",`)]; most != pool.most {
			t.Errorf("%s: %v connections, want %v", pool.name, most, pool.most)
		}
		if used, ok := after[name("connections", `,pool="`+pool.name+`",`)]; !ok || used > pool.most {
			t.Errorf("%s: %v connections in use", pool.name, used)
		}
	}
	grown := func(metric string) float64 { return after[name(metric, ",")] - before[name(metric, ",")] }
	if grown("commits_total") < 20 || grown("transactions_total") < 1 || grown("transaction_seconds_total") <= 0 || grown("unknown_outcomes_total") != 0 {
		t.Errorf("commits %v, transactions %v in %v s, unknown %v", grown("commits_total"), grown("transactions_total"), grown("transaction_seconds_total"), grown("unknown_outcomes_total"))
	}
}
