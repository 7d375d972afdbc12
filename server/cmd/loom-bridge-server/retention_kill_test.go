package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What is too old in the store of a sweep that is killed: so many records of each of two
// memories, and sessions of one agent.
const (
	sweptRecords  = 600
	sweptSessions = 40
)

// sessionsOf are the ids of an agent's sessions.
func (p *process) sessionsOf(tb testing.TB, agent string) (ids []string) {
	tb.Helper()
	got, err := p.context().ListSessions(tb.Context(), &loombridgev1.ListSessionsRequest{AgentId: agent, PageSize: 1000, IncludeClosed: true})
	must(tb, err)
	for _, s := range got.GetSessions() {
		ids = append(ids, s.GetSessionId())
	}
	return ids
}

// recordsOf is how many records a memory has.
func (p *process) recordsOf(tb testing.TB, agent string) int64 {
	tb.Helper()
	got, err := p.memory().ListRecords(tb.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
	must(tb, err)
	return got.GetStats().GetRecords()
}

// A server that is killed while it deletes what is too old goes on at the next start. No
// record and no session is deleted by half, and what is young, pinned or at work stays whole.
//
// Y13
func TestRetainKilledSoak(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	p := MustRun(t, dir)
	for _, agent := range []string{"a", "b"} {
		var lines []string
		for i := range sweptRecords {
			lines = append(lines, line(fmt.Sprintf("r%03d", i), 40*day, fmt.Sprintf(`,"tags":["t%d"]`, i%7)))
		}
		lines = append(lines, line("young", 10*day, ""), line("pinned", 40*day, `,"pinned":true`))
		p.MustAge(t, []string{"--agent", agent}, lines...)
	}
	for i := range sweptSessions {
		id := fmt.Sprintf("s%02d", i)
		p.say(t, id, "a message of "+id)
		p.MustRecord(t, id, "web:search", `{"query":"lamps"}`, strings.Repeat("what "+id+" found ", 1000))
	}
	p.say(t, "parent", "wait for the child")
	_, err := p.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "a", SessionId: "parent", ChildId: "slow", Goal: "take long", Limits: unhurried})
	must(t, err)
	must(t, p.Stop())

	args := []string{"--retain-records", (30 * day).String(), "--retain-sessions", "100ms"}
	kills := soakRoundsOr(t, 2)
	midway := 0
	for round := range kills {
		c := MustStartChild(t, dir, args...)
		p := &process{conn: MustDial(t, c.Address), Address: c.Address}
		waitUntil(t, "something is deleted", func() bool { // records go first, then sessions
			if round%2 == 0 {
				return p.recordsOf(t, "a") < sweptRecords+2
			}
			return len(p.sessionsOf(t, "a")) < sweptSessions+1
		})
		time.Sleep(rand.N(5 * time.Millisecond)) // kills hit different commits
		must(t, c.Process.Kill())
		_ = c.Wait()
		if said, err := checkOf(t, store); err != nil {
			t.Fatalf("check after kill %d: %v\n%s", round, err, said)
		}
		records, sessions := leftOf(t, store)
		t.Logf("kill %d left %d old records and %d sessions", round, records, sessions)
		if records > 0 || sessions > 1 {
			midway++
		}
	}
	if midway == 0 {
		t.Errorf("none of %d kills hit a sweep", kills)
	}

	p = MustRun(t, dir, args...)
	waitUntil(t, "a look ends", func() bool { return p.retention(t).GetSweepTime() != nil })
	for _, agent := range []string{"a", "b"} {
		if got := p.ids(t, agent, ""); got != "young pinned" && got != "pinned young" {
			t.Errorf("%s has %s", agent, got)
		}
		found, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "lamp number", Limit: 50})
		if must(t, err); len(found.GetHits()) != 2 {
			t.Errorf("%s finds %d records", agent, len(found.GetHits()))
		}
	}
	if got := strings.Join(p.sessionsOf(t, "a"), " "); got != "parent" || len(p.heard(t, "parent")) == 0 {
		t.Errorf("sessions left: %q, with messages %q", got, p.heard(t, "parent"))
	}
	blobs, err := p.context().ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: "a"})
	if must(t, err); len(blobs.GetBlobs()) != 0 {
		t.Errorf("%d offloaded results of sessions that went are left", len(blobs.GetBlobs()))
	}
	if p.retention(t).GetFailing() {
		t.Error("a sweep fails")
	}
	must(t, p.Stop())
	if said, err := checkOf(t, store); err != nil {
		t.Errorf("check: %v\n%s", err, said)
	}
}

// leftOf counts the old records and the sessions of a stopped store.
func leftOf(t *testing.T, store string) (records, sessions int) {
	t.Helper()
	engine, err := rockskv.OpenReadOnly(store, nil)
	must(t, err)
	seen := make(map[string]bool)
	must(t, engine.Each(t.Context(), func(ks kv.Keyspace, pair kv.Pair) error {
		scope, rest, err := kv.SplitKey(pair.Key)
		switch {
		case err != nil:
			return err
		case ks == kv.Records && len(rest) == 5 && rest[0] == 'r' && rest[1] == 'r':
			records++
		case ks == kv.Log && scope.Owner == "a" && rest[0] == 'e':
			id, _, err := kv.CutEscaped(rest[1:])
			seen[id] = true
			return err
		}
		return nil
	}))
	must(t, engine.Close())
	return records, len(seen)
}
