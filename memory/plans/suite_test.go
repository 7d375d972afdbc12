package plans_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

// tenant and session are those of most tests.
const (
	tenant  = "default"
	session = "trader-1"
)

// now is the time of every test.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rig is a store with what it stands on.
type rig struct {
	*plans.Store
	engine kv.Engine
	writer *kv.Writer
}

// MustRig returns a store on engine, which stays the caller's. At the end of
// the test it checks that no session keeps more than it may.
func MustRig(tb testing.TB, engine kv.Engine, opts *plans.Options) *rig {
	tb.Helper()
	var o plans.Options
	if opts != nil {
		o = *opts
	}
	o.Now = func() time.Time { return now }
	writer := kv.NewWriter(engine, nil)
	r := &rig{plans.New(engine, writer, &o), engine, writer}
	tb.Cleanup(func() {
		r.MustKeepCaps(tb)
		_ = writer.Close()
	})
	return r
}

// MustKeepCaps counts the keys of every ring.
func (r *rig) MustKeepCaps(tb testing.TB) {
	tb.Helper()
	type place struct {
		scope kv.Scope
		tag   byte
	}
	caps := map[byte]int{'p': plans.MaxPlans, 'x': plans.MaxExecutions, 'l': plans.MaxLines, 'j': 1}
	count := map[place]int{}
	for pair, err := range r.engine.Scan(context.Background(), kv.Records, kv.Range{}) {
		must(tb, err)
		scope, rest, err := kv.SplitKey(pair.Key)
		must(tb, err)
		count[place{scope, rest[0]}]++
	}
	for at, n := range count {
		if limit, ours := caps[at.tag]; ours && n > limit {
			tb.Errorf("%s has %d keys with tag %c, more than %d", at.scope, n, at.tag, limit)
		}
	}
}

func (r *rig) MustSavePlan(tb testing.TB, session string, p plans.Plan) {
	tb.Helper()
	must(tb, r.SavePlan(tb.Context(), tenant, session, p))
}

func (r *rig) MustMark(tb testing.TB, session string, e plans.Execution) {
	tb.Helper()
	must(tb, r.MarkExecuted(tb.Context(), tenant, session, "", &e))
}

// MustAppend appends lines of the kinds at the times 1, 2, 3 and so on.
func (r *rig) MustAppend(tb testing.TB, session string, kinds ...string) {
	tb.Helper()
	for i, kind := range kinds {
		must(tb, r.AppendLine(tb.Context(), tenant, session, int64(i+1), kind, "python"))
	}
}

// MustHashes returns the hashes of recent plans.
func (r *rig) MustHashes(tb testing.TB, session, symbol string, limit int) []string {
	tb.Helper()
	recent, err := r.RecentPlans(tb.Context(), tenant, session, symbol, limit)
	must(tb, err)
	var hashes []string
	for _, p := range recent {
		hashes = append(hashes, p.Hash)
	}
	return hashes
}

func (r *rig) MustRetrieve(tb testing.TB, session, query string, k int) []string {
	tb.Helper()
	lines, err := r.Retrieve(tb.Context(), tenant, session, query, k)
	must(tb, err)
	return lines
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mustEqual(tb testing.TB, what string, want, got any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// mustBeTooLarge wants a *SizeError.
func mustBeTooLarge(tb testing.TB, err error, what string, limit int) {
	tb.Helper()
	var over *plans.SizeError
	if !errors.As(err, &over) || !errors.Is(err, plans.ErrTooLarge) || over.What != what || over.Limit != limit || over.Size <= limit {
		tb.Errorf("got %v, want a %s over %d bytes", err, what, limit)
	}
}

func numbered(n int) string { return fmt.Sprintf("%04d", n) }

func TestOnMemory(t *testing.T) {
	runSuite(t, func(testing.TB) kv.Engine { return memkv.New(nil) })
}

// runSuite runs every test of the store on engines that open makes.
func runSuite(t *testing.T, open func(testing.TB) kv.Engine) {
	tests := map[string]func(*testing.T, kv.Engine){
		"RecentPlans":        testRecentPlans,
		"PlanComesBack":      testPlanComesBack,
		"PlanCap":            testPlanCap,
		"FindDuplicate":      testFindDuplicate,
		"DuplicateWindow":    testDuplicateWindow,
		"FindExecution":      testFindExecution,
		"ExecutionMadeUp":    testExecutionMadeUp,
		"ExecutionCap":       testExecutionCap,
		"Stats":              testStats,
		"Retrieve":           testRetrieve,
		"RetrieveAll":        testRetrieveAll,
		"LineCap":            testLineCap,
		"Summarize":          testSummarize,
		"UnknownSession":     testUnknownSession,
		"StrangeSessions":    testStrangeSessions,
		"SessionsApart":      testSessionsApart,
		"Limits":             testLimits,
		"AnswerLimit":        testAnswerLimit,
		"Failures":           testFailures,
		"Concurrent":         testConcurrent,
		"BesideRecords":      testBesideRecords,
		"DamagedEntries":     testDamagedEntries,
		"ConstantWork":       testConstantWork,
		"TenantsThatAreNone": testTenantsThatAreNone,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}
