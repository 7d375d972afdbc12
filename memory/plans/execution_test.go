package plans_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

// Any record of the hash counts, and the oldest is the answer.
func testFindExecution(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	skipped := plans.Execution{TimestampMillis: 9, PlanHash: "h", Status: "skipped", ErrorMessage: "no funds"}
	full := plans.Execution{
		TimestampMillis: 5, PlanHash: "g", Symbol: "BTC", Action: "BUY", Confidence: 0.85, Status: plans.StatusSuccess,
		Executed: true, OrderID: "o-1", OrderSizeUSDT: 12.5,
	}
	r.MustMark(t, session, skipped)
	r.MustMark(t, session, full)
	r.MustMark(t, session, plans.Execution{TimestampMillis: 1, PlanHash: "h", Status: plans.StatusSuccess, Executed: true})
	r.MustMark(t, session, plans.Execution{OrderID: "without a hash"})
	for hash, want := range map[string]plans.Execution{"h": skipped, "g": full, "": {OrderID: "without a hash"}} {
		got, found, err := r.FindExecution(t.Context(), tenant, session, hash)
		must(t, err)
		if !found || got != want {
			t.Errorf("%q: got %+v, %v", hash, got, found)
		}
	}
	if _, found, err := r.FindExecution(t.Context(), tenant, session, "H"); found || err != nil {
		t.Errorf("found a hash that was never given (%v)", err)
	}
}

// Without an execution the store makes one up; with one, the hash beside it
// plays no part.
func testExecutionMadeUp(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	must(t, r.MarkExecuted(t.Context(), tenant, session, "alone", nil))
	must(t, r.MarkExecuted(t.Context(), tenant, session, "beside", &plans.Execution{PlanHash: "inside"}))
	must(t, r.MarkExecuted(t.Context(), tenant, session, "beside", &plans.Execution{}))
	stats, err := r.Stats(t.Context(), tenant, session, "")
	must(t, err)
	mustEqual(t, "executions", []plans.Execution{
		{},
		{PlanHash: "inside"},
		{TimestampMillis: now.UnixMilli(), PlanHash: "alone", Status: "executed", Executed: true},
	}, stats.Recent)
}

// The last 1000 stay; after that the oldest of a hash is the oldest that is left.
func testExecutionCap(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	mark := func(n int) {
		r.MustMark(t, session, plans.Execution{PlanHash: fmt.Sprint("hash ", n%500), OrderID: numbered(n)})
	}
	want := func(hash int, order string) {
		t.Helper()
		got, found, err := r.FindExecution(t.Context(), tenant, session, fmt.Sprint("hash ", hash))
		must(t, err)
		if found != (order != "") || got.OrderID != order {
			t.Errorf("hash %d: got order %q, %v, want %q", hash, got.OrderID, found, order)
		}
	}
	r.MustMark(t, session, plans.Execution{PlanHash: "hash 600", OrderID: "only"})
	for n := range plans.MaxExecutions - 1 {
		mark(n)
	}
	want(600, "only")
	want(0, "0000")
	mark(999)
	want(600, "")
	want(0, "0000")
	mark(1000)
	want(0, "0500")
	want(1, "0001")
	want(499, "0499")
	mark(1001)
	want(1, "0501")
	stats, err := r.Stats(t.Context(), tenant, session, "")
	must(t, err)
	if stats.Total != plans.MaxExecutions || stats.Recent[0].OrderID != "1001" {
		t.Errorf("%d executions, the last is %q", stats.Total, stats.Recent[0].OrderID)
	}
}

func testStats(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	// Of twelve, BTC has: success, error, skipped, "", SUCCESS, success.
	for i, status := range []string{"success", "error", "error", "skipped", "success", "", "success", "SUCCESS", "error", "success", "x", "executed"} {
		symbol := []string{"BTC", "ETH"}[i%2]
		r.MustMark(t, session, plans.Execution{Symbol: symbol, Status: status, OrderID: numbered(i), Executed: i%3 == 0})
	}
	for _, tt := range []struct {
		symbol                    string
		total, successful, failed int
		rate                      float32
		recent                    []string
	}{
		{"", 12, 4, 3, 4. / 12, []string{"0011", "0010", "0009", "0008", "0007", "0006", "0005", "0004", "0003", "0002"}},
		{"BTC", 6, 3, 2, 0.5, []string{"0010", "0008", "0006", "0004", "0002", "0000"}},
		{"eth", 0, 0, 0, 0, nil},
	} {
		got, err := r.Stats(t.Context(), tenant, session, tt.symbol)
		must(t, err)
		var recent []string
		for _, e := range got.Recent {
			recent = append(recent, e.OrderID)
		}
		mustEqual(t, "recent of "+tt.symbol, tt.recent, recent)
		if got.Total != tt.total || got.Successful != tt.successful || got.Failed != tt.failed || got.WinRate != tt.rate {
			t.Errorf("%q: got %+v", tt.symbol, got)
		}
	}
}
