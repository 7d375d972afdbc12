package plans_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// mustBeEmpty wants nothing of a session.
func (r *rig) mustBeEmpty(tb testing.TB, tenant, session string) {
	tb.Helper()
	recent, err := r.RecentPlans(tb.Context(), tenant, session, "", 100)
	must(tb, err)
	_, _, duplicate, err := r.FindDuplicate(tb.Context(), tenant, session, plans.Plan{}, 300)
	must(tb, err)
	_, executed, err := r.FindExecution(tb.Context(), tenant, session, "")
	must(tb, err)
	stats, err := r.Stats(tb.Context(), tenant, session, "")
	must(tb, err)
	lines, err := r.Retrieve(tb.Context(), tenant, session, "", -1)
	must(tb, err)
	text, events, err := r.Summarize(tb.Context(), tenant, session)
	must(tb, err)
	if len(recent)+stats.Total+len(stats.Recent)+len(lines)+events > 0 || duplicate || executed || text != "" || stats.WinRate != 0 {
		tb.Errorf("%.40q has something: %v %v %v %v %v %d %q", session, recent, duplicate, executed, stats, lines, events, text)
	}
}

// An unknown session is empty, and asking does not make it known.
func testUnknownSession(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	for _, session := range []string{session, "", "\x00", strings.Repeat("x", 300)} {
		r.mustBeEmpty(t, tenant, session)
	}
	for pair, err := range engine.Scan(t.Context(), kv.Records, kv.Range{}) {
		t.Errorf("there is a key %q (%v)", pair.Key, err)
	}
}

// strange are names of which no two are one session, whether an agent can have
// them or not.
var strange = []string{
	"", " ", "\x00", "\x00\x00", "a", "a\x00", "a\x00b", "\xff", "\xff\xfe", "journal/", "Ä",
	"journal/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", // the hash of nothing
	strings.Repeat("x", kv.MaxOwnerBytes), strings.Repeat("x", kv.MaxOwnerBytes+1), strings.Repeat("x", 3<<20),
}

// Any name is a session of its own.
func testStrangeSessions(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	for i, name := range strange {
		r.MustSavePlan(t, name, plans.Plan{Hash: numbered(i)})
		r.MustMark(t, name, plans.Execution{PlanHash: numbered(i)})
		r.MustAppend(t, name, numbered(i))
	}
	for i, name := range strange {
		mustEqual(t, "plans", []string{numbered(i)}, r.MustHashes(t, name, "", 100))
		if _, found, err := r.FindExecution(t.Context(), tenant, name, numbered(i)); !found || err != nil {
			t.Errorf("execution of session %d: %v, %v", i, found, err)
		}
		text, events, err := r.Summarize(t.Context(), tenant, name)
		if want := fmt.Sprintf("[1] %s from python", numbered(i)); text != want || events != 1 || err != nil {
			t.Errorf("session %d: %q, %d, %v", i, text, events, err)
		}
	}
	if got := r.MustRetrieve(t, "", "", -1); len(got) != len(strange) {
		t.Errorf("%d lines in %d sessions", len(got), len(strange))
	}
}

func testSessionsApart(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	r.MustSavePlan(t, session, plans.Plan{})
	r.MustMark(t, session, plans.Execution{})
	r.MustAppend(t, session, "k")
	for _, other := range []string{"trader-2", "trader-", "trader-11", "TRADER-1"} {
		r.mustBeEmpty(t, tenant, other)
	}
	for _, other := range []string{session, ""} {
		r.mustBeEmpty(t, "defaul", other)
		r.mustBeEmpty(t, "default2", other)
	}
}

// What is too large is refused as a whole; one byte less is taken.
func testLimits(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	// Tag and size of the only field.
	const overMiB, over64KiB, over256KiB = 1 + 3, 1 + 3, 1 + 3
	for _, tt := range []struct {
		what        string
		limit, over int
		add         func(text string) error
	}{
		{"plan", plans.MaxPlanBytes, overMiB, func(text string) error {
			return r.SavePlan(t.Context(), tenant, session, plans.Plan{Reasoning: text})
		}},
		{"execution", plans.MaxExecutionBytes, over256KiB, func(text string) error {
			return r.MarkExecuted(t.Context(), tenant, session, "", &plans.Execution{ErrorMessage: text})
		}},
		{"execution", plans.MaxExecutionBytes, over256KiB + 2 + 10 + 2 + 7, func(hash string) error {
			return r.MarkExecuted(t.Context(), tenant, session, hash, nil)
		}},
		{"line", plans.MaxLineBytes, over64KiB, func(text string) error {
			return r.AppendLine(t.Context(), tenant, session, 0, text, "")
		}},
	} {
		mustBeTooLarge(t, tt.add(strings.Repeat("x", tt.limit)), tt.what, tt.limit)
		mustBeTooLarge(t, tt.add(strings.Repeat("x", tt.limit-tt.over+1)+strings.Repeat("y", 20)), tt.what, tt.limit)
		r.mustBeEmpty(t, tenant, session)
	}
	r.MustSavePlan(t, session, plans.Plan{Reasoning: strings.Repeat("x", plans.MaxPlanBytes-overMiB)})
	r.MustMark(t, session, plans.Execution{ErrorMessage: strings.Repeat("x", plans.MaxExecutionBytes-over256KiB)})
	r.MustAppend(t, session, strings.Repeat("x", plans.MaxLineBytes-over64KiB-10))
}

// An answer that no client would take is refused; one that asks for less is
// given, and summaries and statistics always fit.
func testAnswerLimit(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	for range 10 {
		r.MustSavePlan(t, session, plans.Plan{Reasoning: strings.Repeat("x", 1_000_000)})
		r.MustMark(t, session, plans.Execution{ErrorMessage: strings.Repeat("x", plans.MaxExecutionBytes-4)})
	}
	for range 70 {
		r.MustAppend(t, session, strings.Repeat("x", plans.MaxLineBytes-14))
	}
	_, err := r.RecentPlans(t.Context(), tenant, session, "", 5)
	mustBeTooLarge(t, err, "answer", plans.DefaultMaxAnswerBytes)
	if got := r.MustHashes(t, session, "", 4); len(got) != 4 {
		t.Errorf("%d plans, want 4", len(got))
	}
	for _, in := range []string{session, ""} {
		_, err = r.Retrieve(t.Context(), tenant, in, "", -1)
		mustBeTooLarge(t, err, "answer", plans.DefaultMaxAnswerBytes)
		if got := r.MustRetrieve(t, in, "", 60); len(got) != 60 {
			t.Errorf("%d lines, want 60", len(got))
		}
	}
	text, events, err := r.Summarize(t.Context(), tenant, session)
	if err != nil || events != 50 || len(text) > plans.DefaultMaxAnswerBytes {
		t.Errorf("summary of %d lines, %d bytes, %v", events, len(text), err)
	}
	if stats, err := r.Stats(t.Context(), tenant, session, ""); err != nil || len(stats.Recent) != 10 {
		t.Errorf("%d executions, %v", len(stats.Recent), err)
	}
	small := plans.New(engine, r.writer, &plans.Options{MaxAnswerBytes: 1000})
	_, err = small.RecentPlans(t.Context(), tenant, session, "", 1)
	mustBeTooLarge(t, err, "answer", 1000)
}

// Whatever fails leaves nothing behind, and comes back as what it is.
func testFailures(t *testing.T, engine kv.Engine) {
	faulty := kvtest.Faulty(engine, kvtest.FailurePlan{})
	r := MustRig(t, faulty, nil)
	appends := map[string]func() error{
		"plan":      func() error { return r.SavePlan(t.Context(), tenant, session, plans.Plan{}) },
		"execution": func() error { return r.MarkExecuted(t.Context(), tenant, session, "", nil) },
		"line":      func() error { return r.AppendLine(t.Context(), tenant, session, 1, "k", "s") },
	}
	for what, add := range appends {
		for _, plan := range []kvtest.FailurePlan{{Commit: 1}, {Read: 1, Repeat: true}} {
			faulty.Replan(plan)
			if err := add(); !errors.Is(err, kvtest.ErrFault) || errors.Is(err, plans.ErrTooLarge) {
				t.Errorf("%s: got %v", what, err)
			}
		}
	}
	faulty.Replan(kvtest.FailurePlan{})
	r.mustBeEmpty(t, tenant, session)
	for _, add := range appends {
		must(t, add())
	}
	for what, read := range r.reads(t, session) {
		for n := 1; ; n++ {
			faulty.Replan(kvtest.FailurePlan{Read: n})
			err := read()
			if _, reads := faulty.Calls(); reads < n {
				must(t, err)
				break
			}
			if !errors.Is(err, kvtest.ErrFault) {
				t.Errorf("%s, read %d: got %v", what, n, err)
			}
		}
	}
	faulty.Replan(kvtest.FailurePlan{})
}

// reads are all ways to read a session.
func (r *rig) reads(t *testing.T, session string) map[string]func() error {
	return map[string]func() error{
		"RecentPlans": func() error {
			_, err := r.RecentPlans(t.Context(), tenant, session, "", 100)
			return err
		},
		"FindDuplicate": func() error {
			_, _, _, err := r.FindDuplicate(t.Context(), tenant, session, plans.Plan{Symbol: "none"}, 0)
			return err
		},
		"FindExecution": func() error {
			_, _, err := r.FindExecution(t.Context(), tenant, session, "none")
			return err
		},
		"Stats": func() error {
			_, err := r.Stats(t.Context(), tenant, session, "")
			return err
		},
		"Retrieve": func() error {
			_, err := r.Retrieve(t.Context(), tenant, session, "", -1)
			return err
		},
		"RetrieveAll": func() error {
			_, err := r.Retrieve(t.Context(), tenant, "", "", -1)
			return err
		},
		"Summarize": func() error {
			_, _, err := r.Summarize(t.Context(), tenant, session)
			return err
		},
	}
}

// Appends at the same time all count, and readers meanwhile see whole rings.
func testConcurrent(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	var running sync.WaitGroup
	for w := range 8 {
		running.Go(func() {
			for n := range 40 {
				if err := r.SavePlan(t.Context(), tenant, session, plans.Plan{Hash: fmt.Sprint(w, " ", n)}); err != nil {
					t.Error(err)
				}
				got, err := r.RecentPlans(t.Context(), tenant, session, "", 1000)
				if err != nil || len(got) < min(n+1, plans.MaxPlans) || len(got) > plans.MaxPlans {
					t.Errorf("%d plans, %v", len(got), err)
				}
			}
		})
	}
	running.Wait()
	seen := map[string]bool{}
	for _, hash := range r.MustHashes(t, session, "", 1000) {
		seen[hash] = true
	}
	if len(seen) != plans.MaxPlans {
		t.Errorf("%d different plans, want %d", len(seen), plans.MaxPlans)
	}
}

// A scope holds records and plans side by side; neither sees the other, and
// the check of the memory passes.
func testBesideRecords(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	store := memory.New(engine, r.writer, &memory.Options{PackAfter: 3})
	defer store.Close()
	agent := kv.AgentScope(tenant, session)
	nobody := "\x00"
	for i := range 150 {
		if i < 20 {
			_, err := store.Save(t.Context(), agent, record.Record{Text: fmt.Sprint("price ", i), Key: numbered(i)}, numbered(i))
			must(t, err)
		}
		for _, session := range []string{session, "only a journal", nobody} {
			r.MustSavePlan(t, session, plans.Plan{Hash: numbered(i), Reasoning: "price"})
			r.MustMark(t, session, plans.Execution{PlanHash: numbered(i)})
			r.MustAppend(t, session, "price")
		}
	}
	stats, err := store.Stats(t.Context(), agent)
	must(t, err)
	if stats.Records != 20 {
		t.Errorf("%d records, want 20", stats.Records)
	}
	result, err := store.Query(t.Context(), agent, question.Question{Text: "price", Limit: 100})
	must(t, err)
	if len(result.Hits) != 20 {
		t.Errorf("%d hits, want 20", len(result.Hits))
	}
	checked := 0
	for pair, err := range engine.Scan(t.Context(), kv.Records, kv.Range{}) {
		must(t, err)
		scope, rest, err := kv.SplitKey(pair.Key)
		must(t, err)
		if rest[0] != 'j' { // each scope has one
			continue
		}
		checked++
		must(t, store.Check(t.Context(), scope))
		if s, err := store.Stats(t.Context(), scope); err != nil || scope != agent && s.Records != 0 {
			t.Errorf("%s: %+v, %v", scope, s, err)
		}
	}
	if checked != 3 {
		t.Errorf("%d scopes with plans, want 3", checked)
	}
	if got := r.MustHashes(t, session, "", 1000); len(got) != plans.MaxPlans || got[0] != "0149" {
		t.Errorf("%d plans, the last is %q", len(got), got[0])
	}
}

// A stored entry that can't be read is ErrDamaged, not an empty answer.
func testDamagedEntries(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	put := func(tag byte, number ...byte) {
		batch := &kv.Batch{}
		scope := kv.AgentScope(tenant, session)
		batch.Put(kv.Records, scope.Key(tag, number), []byte{0xff})
		must(t, engine.Commit(t.Context(), kv.Commit{
			Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Any: true}}, Batch: batch,
		}))
	}
	r.MustSavePlan(t, session, plans.Plan{})
	r.MustMark(t, session, plans.Execution{})
	r.MustAppend(t, session, "k")
	for _, tag := range []byte("pxl") {
		put(tag, 0, 0, 0, 0, 0, 0, 0, 1)
	}
	for what, read := range r.reads(t, session) {
		if err := read(); !errors.Is(err, plans.ErrDamaged) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	put('j')
	for what, read := range r.reads(t, session) {
		if err := read(); !errors.Is(err, plans.ErrDamaged) {
			t.Errorf("%s without a counters: got %v", what, err)
		}
	}
	if err := r.SavePlan(t.Context(), tenant, session, plans.Plan{}); !errors.Is(err, plans.ErrDamaged) {
		t.Errorf("append without a counters: got %v", err)
	}
}

// An append costs one commit and as many reads whether the session is new or
// full, and reading all of a ring is one lookup and one scan. Searching all
// sessions costs a few reads for each scope that there is, not for each record.
func testConstantWork(t *testing.T, engine kv.Engine) {
	faulty := kvtest.Faulty(engine, kvtest.FailurePlan{})
	r := MustRig(t, faulty, nil)
	calls := func(do func() error) (commits, reads int) {
		faulty.Replan(kvtest.FailurePlan{})
		must(t, do())
		return faulty.Calls()
	}
	add := func() error { return r.SavePlan(t.Context(), tenant, session, plans.Plan{Symbol: "BTC"}) }
	must(t, add())
	_, want := calls(add)
	for range 300 {
		if commits, reads := calls(add); commits != 1 || reads != want {
			t.Fatalf("%d commits and %d reads, want 1 and %d", commits, reads, want)
		}
	}
	if _, reads := calls(r.reads(t, session)["RecentPlans"]); reads != 2 {
		t.Errorf("reading the plans took %d reads, want 2", reads)
	}
	store := memory.New(faulty, r.writer, nil)
	const scopes = 5
	for i := range scopes {
		for n := range 30 {
			_, err := store.Save(t.Context(), kv.AgentScope(tenant, numbered(i)), record.Record{Text: numbered(n)}, "")
			must(t, err)
		}
	}
	must(t, store.Close()) // its work in the background reads, too
	r.MustAppend(t, session, "k")
	// A snapshot, one scan and one counter for each scope and the session, one for the lines,
	// one for each end.
	const all = 1 + 2*(scopes+1) + 1 + 2
	if _, reads := calls(r.reads(t, session)["RetrieveAll"]); reads != all {
		t.Errorf("searching all took %d reads, want %d", reads, all)
	}
}

// A tenant that is none is refused, above all one that would reach into
// another's keys.
func testTenantsThatAreNone(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	r.MustAppend(t, session, "k")
	for _, tenant := range []string{"", "default\x00atrader-1", "\xff", strings.Repeat("x", kv.MaxTenantBytes+1)} {
		for _, in := range []string{session, "", "\x00"} {
			if err := r.AppendLine(t.Context(), tenant, in, 1, "k", "s"); !errors.Is(err, kv.ErrBadScope) {
				t.Errorf("append for %q: got %v", tenant, err)
			}
			if lines, err := r.Retrieve(t.Context(), tenant, in, "", -1); !errors.Is(err, kv.ErrBadScope) {
				t.Errorf("retrieve for %q: got %v, %v", tenant, lines, err)
			}
		}
	}
}
