package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// agent is the scope of most tests.
var agent = kv.AgentScope("default", "researcher")

// start is when the clock of every test begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// rig is a store with what it stands on.
type rig struct {
	*memory.Store
	engine kv.Engine
	clock  *clock
	opts   memory.Options
	close  func()
}

// MustRig returns a store on engine, small enough that a dozen records are
// packed and merged. At the end of the test it checks the scope agent.
func MustRig(tb testing.TB, engine kv.Engine) *rig {
	tb.Helper()
	r := &rig{engine: engine, clock: &clock{now: start}}
	r.opts = memory.Options{Now: r.clock.Now, PackAfter: 3, SweepEvery: -1}
	r.open()
	tb.Cleanup(func() {
		r.MustCheck(tb, agent)
		r.close()
	})
	return r
}

func (r *rig) open() {
	writer := kv.NewWriter(r.engine, nil)
	store := memory.New(r.engine, writer, &r.opts)
	r.Store = store
	r.close = func() {
		_ = store.Close()
		_ = writer.Close()
	}
}

// Reopen puts a new store in the place of the old one.
func (r *rig) Reopen() {
	r.close()
	r.open()
}

func (r *rig) MustCheck(tb testing.TB, scope kv.Scope) {
	tb.Helper()
	if err := r.Check(context.Background(), scope); err != nil {
		var m *memory.MismatchError
		if errors.As(err, &m) {
			tb.Errorf("%d differences: %q", m.Total, m.Differences)
		}
		tb.Fatalf("check: %v", err)
	}
}

// MustPack packs the whole tail and merges what is due, as another process on
// the same engine would.
func (r *rig) MustPack(tb testing.TB) {
	tb.Helper()
	writer := kv.NewWriter(r.engine, nil)
	defer writer.Close()
	index := lexical.New(nil)
	for {
		s, _, err := index.Pack(tb.Context(), r.engine, writer, agent)
		if err != nil {
			tb.Fatalf("pack: %v", err)
		}
		if s.Tail() == 0 {
			break
		}
	}
	if _, err := index.Merge(tb.Context(), r.engine, writer, agent); err != nil {
		tb.Fatalf("merge: %v", err)
	}
}

func (r *rig) MustSave(tb testing.TB, record record.Record) record.Record {
	tb.Helper()
	saved, err := r.Save(tb.Context(), agent, record, "")
	if err != nil {
		tb.Fatalf("save %q: %v", record.Text, err)
	}
	return saved
}

func (r *rig) MustQuery(tb testing.TB, q question.Question) memory.Answer {
	tb.Helper()
	result, err := r.Query(tb.Context(), agent, q)
	if err != nil {
		tb.Fatalf("query %+v: %v", q, err)
	}
	return result
}

func ids(result memory.Answer) []string {
	found := []string{}
	for _, hit := range result.Hits {
		found = append(found, hit.Record.ID)
	}
	return found
}

// same compares records as callers see them.
var same = cmpopts.IgnoreFields(record.Record{}, "Document")

func mustEqual(tb testing.TB, what string, want, got any, opts ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, append(opts, same)...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestStoreOnMemory(t *testing.T) {
	runSuite(t, pgtest.Engine)
}

// runSuite runs every test of the store on engines that open makes.
func runSuite(t *testing.T, open func(testing.TB) kv.Engine) {
	tests := map[string]func(*testing.T, *rig){
		"SaveAndGet":            testSaveAndGet,
		"Defaults":              testDefaults,
		"InvalidRecords":        testInvalidRecords,
		"TakenNames":            testTakenNames,
		"Supersede":             testSupersede,
		"MissingSources":        testMissingSources,
		"RequestID":             testRequestID,
		"OneWinner":             testOneWinner,
		"FailedCommit":          testFailedCommit,
		"Update":                testUpdate,
		"UpdateOrder":           testUpdateOrder,
		"UpdateErrors":          testUpdateErrors,
		"UpdateRequestID":       testUpdateRequestID,
		"UpdateSuperseded":      testUpdateSuperseded,
		"HealChain":             testHealChain,
		"FewerVersions":         testFewerVersions,
		"CompareAndSet":         testCompareAndSet,
		"Delete":                testDelete,
		"DeleteErrors":          testDeleteErrors,
		"KeyMovedOn":            testKeyMovedOn,
		"Batch":                 testBatch,
		"BatchErrors":           testBatchErrors,
		"LargestBatch":          testLargestBatch,
		"StageTogether":         testStageTogether,
		"Sweep":                 testSweep,
		"SweepOlderStore":       testSweepOlderStore,
		"SweepFollowsChanges":   testSweepFollowsChanges,
		"SweepAllScopes":        testSweepAllScopes,
		"SweepChains":           testSweepChains,
		"SweepLongRecords":      testSweepLongRecords,
		"List":                  testList,
		"ListWhileChanging":     testListWhileChanging,
		"ListPages":             testListPages,
		"LifeAgreesWithModel":   testLifeAgreesWithModel,
		"Expiry":                testExpiry,
		"QueryRanks":            testQueryRanks,
		"QueryLimits":           testQueryLimits,
		"QueryWordsOnly":        testQueryWordsOnly,
		"QueryReceipt":          testQueryReceipt,
		"Languages":             testLanguages,
		"Filters":               testFilters,
		"FilterErrors":          testFilterErrors,
		"FilterMatchesFew":      testFilterMatchesFew,
		"ReadYourWrites":        testReadYourWrites,
		"Scopes":                testScopes,
		"Reopen":                testReopen,
		"HostileMetadata":       testHostileMetadata,
		"LongTexts":             testLongTexts,
		"Closed":                testClosed,
		"AgreesWithPlainSearch": testAgreesWithModel,
		"Follow":                testFollow,
		"FollowWaits":           testFollowWaits,
		"FollowErrors":          testFollowErrors,
		"Transfer":              testTransfer,
		"ImportErrors":          testImportErrors,
	}
	if testing.Short() {
		// They fill a limit, one call after another: minutes under the race detector,
		// which has nothing to find there.
		for _, name := range []string{"LargestBatch", "SweepLongRecords", "LongTexts", "ListPages"} {
			delete(tests, name)
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, MustRig(t, open(t))) })
	}
}

// fill saves n records of little interest.
func (r *rig) fill(tb testing.TB, n int) {
	tb.Helper()
	for i := range n {
		r.MustSave(tb, record.Record{Text: fmt.Sprintf("Filler note %d about gardens and weather", i), Tags: []string{"filler"}})
	}
}
