package plans_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

// The last appended comes first, whatever the timestamps say; the limit is
// clamped, and the symbol has to be exactly that.
func testRecentPlans(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	for i, p := range []plans.Plan{
		{TimestampMillis: 300, Symbol: "BTC", Hash: "a"},
		{TimestampMillis: 100, Symbol: "BTC", Hash: "b"},
		{TimestampMillis: 200, Symbol: "ETH", Hash: "c"},
		{TimestampMillis: 50, Symbol: "BTC", Hash: "d"},
		{TimestampMillis: 60, Hash: "e"},
		{TimestampMillis: 60, Hash: "e"},
	} {
		p.Reasoning = fmt.Sprint(i)
		r.MustSavePlan(t, session, p)
	}
	for _, tt := range []struct {
		symbol string
		limit  int
		want   []string
	}{
		{"BTC", 5, []string{"d", "b", "a"}},
		{"BTC", 2, []string{"d", "b"}},
		{"BTC", 1, []string{"d"}},
		{"BTC", 0, []string{"d"}},
		{"BTC", -7, []string{"d"}},
		{"BTC", 5000, []string{"d", "b", "a"}},
		{"ETH", 5, []string{"c"}},
		{"", 5, []string{"e", "e"}},
		{"btc", 5, nil},
		{"BT", 5, nil},
	} {
		mustEqual(t, fmt.Sprintf("%q, limit %d", tt.symbol, tt.limit), tt.want, r.MustHashes(t, session, tt.symbol, tt.limit))
	}
}

func testPlanComesBack(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	for _, want := range []plans.Plan{
		{},
		{
			TimestampMillis: -5, Symbol: "BTC/USDT", Action: "BUY", Confidence: 0.85, Reasoning: "Grüße\n\x00", Hash: "0badf00d",
			Method: "llm", Metadata: map[string]string{"k": "v", "": "", "ü": "\n"},
		},
	} {
		r.MustSavePlan(t, session, want)
		got, err := r.RecentPlans(t.Context(), tenant, session, want.Symbol, 1)
		must(t, err)
		mustEqual(t, "plan", []plans.Plan{want}, got)
	}
}

// The last 100 stay, over all symbols together.
func testPlanCap(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	r.MustSavePlan(t, session, plans.Plan{Symbol: "ETH", Action: "BUY", Hash: "first"})
	for i := range plans.MaxPlans - 1 {
		r.MustSavePlan(t, session, plans.Plan{Symbol: "BTC", Hash: numbered(i)})
	}
	mustEqual(t, "100 plans", []string{"first"}, r.MustHashes(t, session, "ETH", 100))
	for i := range 20 {
		r.MustSavePlan(t, session, plans.Plan{Symbol: "BTC", Hash: numbered(plans.MaxPlans - 1 + i)})
	}
	if got := r.MustHashes(t, session, "ETH", 100); got != nil {
		t.Errorf("%v should have been pushed out", got)
	}
	if _, _, found, err := r.FindDuplicate(t.Context(), tenant, session, plans.Plan{Symbol: "ETH", Action: "BUY"}, 0); found || err != nil {
		t.Errorf("a plan that was pushed out is a duplicate (%v)", err)
	}
	var want []string
	for i := range plans.MaxPlans {
		want = append(want, numbered(plans.MaxPlans+18-i))
	}
	got := r.MustHashes(t, session, "BTC", 1000)
	mustEqual(t, "after 120", want, got)
	if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("not the newest first: %v", got)
	}
}

// The first appended that matches wins, not the nearest; hash, reasoning and
// confidence play no part.
func testFindDuplicate(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	for _, p := range []plans.Plan{
		{TimestampMillis: 1_000_000, Symbol: "BTC", Action: "SELL", Hash: "other action"},
		{TimestampMillis: 1_000_000, Symbol: "ETH", Action: "BUY", Hash: "other symbol"},
		{TimestampMillis: 700_001, Symbol: "BTC", Action: "BUY", Hash: "first", Confidence: 0.1, Reasoning: "a"},
		{TimestampMillis: 1_000_000, Symbol: "BTC", Action: "BUY", Hash: "nearest", Confidence: 0.9},
	} {
		r.MustSavePlan(t, session, p)
	}
	for _, tt := range []struct {
		name   string
		plan   plans.Plan
		window int
		hash   string
		apart  time.Duration
	}{
		{"the first", plans.Plan{TimestampMillis: 1_000_000, Symbol: "BTC", Action: "BUY", Hash: "x", Confidence: 0.5}, 300, "first", 299_999 * time.Millisecond},
		{"the second", plans.Plan{TimestampMillis: 1_000_001, Symbol: "BTC", Action: "BUY"}, 300, "nearest", time.Millisecond},
		{"other action", plans.Plan{TimestampMillis: 1_000_000, Symbol: "BTC", Action: "HOLD"}, 300, "", 0},
		{"other symbol", plans.Plan{TimestampMillis: 1_000_000, Symbol: "btc", Action: "BUY"}, 300, "", 0},
		{"same hash only", plans.Plan{TimestampMillis: 9_000_000, Symbol: "BTC", Action: "BUY", Hash: "first"}, 300, "", 0},
	} {
		got, apart, found, err := r.FindDuplicate(t.Context(), tenant, session, tt.plan, tt.window)
		must(t, err)
		if found != (tt.hash != "") || got.Hash != tt.hash || apart != tt.apart {
			t.Errorf("%s: got %q, %v away, %v", tt.name, got.Hash, apart, found)
		}
	}
}

// The window is at least a minute, counts both ways, and is open at its end.
func testDuplicateWindow(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	const at = 1_000_000
	r.MustSavePlan(t, session, plans.Plan{TimestampMillis: at, Hash: "h"})
	for _, tt := range []struct {
		timestamp int64
		window    int
		want      bool
	}{
		{at, 0, true},
		{at + 59_999, 0, true},
		{at + 60_000, 0, false},
		{at - 59_999, 0, true},
		{at - 60_000, 0, false},
		{at + 59_999, -5, true},
		{at + 60_000, -5, false},
		{at + 59_999, 1, true},
		{at + 60_999, 61, true},
		{at + 61_000, 61, false},
		{at - 299_999, 300, true},
		{at + 300_000, 300, false},
		{at + 1000*math.MaxInt32 - 1, math.MaxInt32, true},
		{at + 1000*math.MaxInt32, math.MaxInt32, false},
		{math.MinInt64, math.MaxInt32, false},
		{math.MaxInt64, math.MaxInt64, false},
		{at, math.MinInt64, true},
	} {
		_, apart, found, err := r.FindDuplicate(t.Context(), tenant, session, plans.Plan{TimestampMillis: tt.timestamp}, tt.window)
		must(t, err)
		if want := max(tt.timestamp-at, at-tt.timestamp); found != tt.want || found && apart.Milliseconds() != want {
			t.Errorf("at %d, window %d: got %v, %v away", tt.timestamp, tt.window, found, apart)
		}
	}
}
