package plans_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

func testRetrieve(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	r.MustAppend(t, session, "Price.Update", "order", "price.drop", "ÄRGER")
	must(t, r.AppendLine(t.Context(), tenant, session, -7, "", ""))
	price, order, drop, anger, none := "[1] Price.Update from python", "[2] order from python", "[3] price.drop from python", "[4] ÄRGER from python", "[-7]  from "
	for _, tt := range []struct {
		query string
		k     int
		want  []string
	}{
		{"", -1, []string{price, order, drop, anger, none}},
		{"", math.MinInt32, []string{price, order, drop, anger, none}},
		{"", 3, []string{price, order, drop}},
		{"", 5, []string{price, order, drop, anger, none}},
		{"", 50, []string{price, order, drop, anger, none}},
		{"", 1, []string{price}},
		{"", 0, []string{price}},
		{"PRICE", 10, []string{price, drop}},
		{"price", 1, []string{price}},
		{"drop", 0, []string{drop}},
		{"ärg", 10, []string{anger}},
		{"[2]", 10, []string{order}},
		{"from Python", 2, []string{price, order}},
		{"[-7]", -1, []string{none}},
		{"price order", 10, nil},
		{"nothing", 0, nil},
		{strings.Repeat("x", plans.MaxQueryBytes+1), -1, nil},
	} {
		mustEqual(t, fmt.Sprintf("%.20q, k %d", tt.query, tt.k), tt.want, r.MustRetrieve(t, session, tt.query, tt.k))
	}
}

// Without a session all of the tenant are searched: those that agents can be
// named like in the order of their names, then the others, always alike.
func testRetrieveAll(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	r.MustAppend(t, "b", "b1", "b2")
	r.MustAppend(t, "", "empty")
	r.MustAppend(t, "a", "a1", "a2")
	r.MustAppend(t, "a b", "ab")
	r.MustAppend(t, "with\x00nul", "nul")
	r.MustSavePlan(t, "aa", plans.Plan{Symbol: "a plan is no line"})
	must(t, r.AppendLine(t.Context(), "other", "a", 1, "other tenant", ""))
	must(t, r.AppendLine(t.Context(), "defaulu", "a", 1, "next tenant", ""))
	must(t, r.AppendLine(t.Context(), "defaul", "a", 1, "tenant before", ""))
	// A scope without a session, one with a tag before those of sessions, one with a
	// tag between, and a system scope that is no session's.
	for _, at := range []struct {
		scope kv.Scope
		tag   byte
	}{
		{kv.AgentScope(tenant, "ab"), 'r'},
		{kv.AgentScope(tenant, "a"), 'b'},
		{kv.AgentScope(tenant, "abc"), 'b'},
		{kv.AgentScope(tenant, "b"), 'k'},
		{kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: "journal"}, 'j'},
		{kv.Scope{Tenant: tenant, Kind: kv.OwnerUser, Owner: "a"}, 'j'},
	} {
		batch := &kv.Batch{}
		batch.Put(kv.Records, at.scope.Key(at.tag), []byte{0xff})
		guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Records, Scope: at.scope}, Any: true}
		must(t, engine.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}))
	}
	line := func(n int, kind string) string { return fmt.Sprintf("[%d] %s from python", n, kind) }
	want := []string{line(1, "a1"), line(2, "a2"), line(1, "ab"), line(1, "b1"), line(2, "b2"), line(1, "nul"), line(1, "empty")}
	mustEqual(t, "all", want, r.MustRetrieve(t, "", "", -1))
	mustEqual(t, "again", want, r.MustRetrieve(t, "", "", -1))
	mustEqual(t, "first four", want[:4], r.MustRetrieve(t, "", "", 4))
	mustEqual(t, "by text", []string{line(2, "a2"), line(2, "b2")}, r.MustRetrieve(t, "", "2] ", -1))
	mustEqual(t, "one of a session without a name", want[6:], r.MustRetrieve(t, "", "EMPTY", 0))
}

func testLineCap(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	for i := range plans.MaxLines + 30 {
		must(t, r.AppendLine(t.Context(), tenant, session, int64(i), "k", "s"))
	}
	for _, in := range []string{session, ""} {
		got := r.MustRetrieve(t, in, "", -1)
		if len(got) != plans.MaxLines || got[0] != "[30] k from s" || got[len(got)-1] != "[529] k from s" {
			t.Errorf("%q: %d lines from %q to %q", in, len(got), got[0], got[len(got)-1])
		}
	}
}

// The oldest 50 lines that are left make the summary, and they are what is
// counted.
func testSummarize(t *testing.T, engine kv.Engine) {
	r := MustRig(t, engine, nil)
	text, events, err := r.Summarize(t.Context(), tenant, session)
	if text != "" || events != 0 || err != nil {
		t.Errorf("unknown session: %q, %d, %v", text, events, err)
	}
	var lines []string
	for i := range plans.MaxLines + 1 {
		must(t, r.AppendLine(t.Context(), tenant, session, int64(i), "k", "s"))
		lines = append(lines, fmt.Sprintf("[%d] k from s", i))
		first, want := max(0, i+1-plans.MaxLines), min(i+1, plans.MaxSummaryLines)
		if i > 60 && i < plans.MaxLines-1 {
			continue
		}
		text, events, err := r.Summarize(t.Context(), tenant, session)
		if must(t, err); events != want || text != strings.Join(lines[first:first+want], "\n") {
			t.Fatalf("after %d lines: %d of %q", i+1, events, text)
		}
	}
}
