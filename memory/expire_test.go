package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// keysOf counts the keys of a scope that are not answers of requests.
func keysOf(tb testing.TB, engine kv.Reader, scope kv.Scope, ks kv.Keyspace) map[byte]int {
	tb.Helper()
	n := make(map[byte]int)
	for pair, err := range engine.Scan(tb.Context(), ks, kv.Prefix(scope.AppendPrefix(nil))) {
		if err != nil {
			tb.Fatal(err)
		}
		n[pair.Key[len(scope.AppendPrefix(nil))]]++
	}
	return n
}

// expiryList is the list of what expires.
const expiryList kv.List = "expiry"

func (r *rig) MustSweep(tb testing.TB) int {
	tb.Helper()
	n, err := r.Sweep(tb.Context())
	if err != nil {
		tb.Fatalf("sweep: %v", err)
	}
	return n
}

// MustSequence is the number of the last commit that changed the index.
func (r *rig) MustSequence(tb testing.TB) uint64 {
	tb.Helper()
	stats, err := r.Stats(tb.Context(), agent)
	if err != nil {
		tb.Fatal(err)
	}
	return stats.IndexSequence
}

func testSweep(t *testing.T, r *rig) {
	const many = 150 // more than one commit takes
	list := expiryList.Part(agent)
	kept := r.MustSave(t, record.Record{Text: "meeting notes stay"})
	old := r.MustSave(t, record.Record{Text: "meeting at ten"})
	r.MustSave(t, record.Record{ID: "short", Key: "k", Text: "meeting at noon", TTL: time.Minute, Supersedes: old.ID})
	r.MustUpdate(t, text("short", "meeting at one"))
	for i := range many {
		r.MustSave(t, record.Record{Text: fmt.Sprintf("note %d", i), TTL: 2 * time.Minute})
	}
	later := r.MustSave(t, record.Record{Text: "note of an hour", TTL: time.Hour})
	if n := r.MustSweep(t); n != 0 {
		t.Errorf("%d swept before anything expired", n)
	}
	r.clock.Set(start.Add(time.Minute))
	if n := r.MustSweep(t); n != 1 {
		t.Errorf("%d swept", n)
	}
	mustEqual(t, "found", []string{old.ID, kept.ID}, ids(r.MustQuery(t, question.Question{Text: "meeting"})))
	r.MustCheck(t, agent)
	r.MustPack(t)
	r.Reopen()
	r.clock.Set(start.Add(2 * time.Minute))
	if n := r.MustSweep(t); n != many {
		t.Errorf("%d swept", n)
	}
	r.clock.Set(start.Add(4 * time.Minute))
	if n := r.MustSweep(t); n != 0 {
		t.Errorf("%d swept twice", n)
	}
	records := keysOf(t, r.engine, agent, kv.Records)
	if records['r'] != 3 || records['t'] != 1 || records['h'] != 0 || records['k'] != 0 {
		t.Errorf("keys left: %v", records)
	}
	if left := keysOf(t, r.engine, list, kv.System); left['e'] != 1 {
		t.Errorf("list: %v", left)
	}
	r.MustGet(t, later.ID)
	if got := r.MustGet(t, old.ID); got.SupersededBy != "" {
		t.Errorf("replaced by what expired: %+v", got)
	}
}

// testSweepOlderStore: what a store before format 4 has in one list is swept with what
// stands in parts since, and nothing is left of either.
func testSweepOlderStore(t *testing.T, r *rig) {
	others := []kv.Scope{kv.AgentScope(agent.Tenant, "other"), {Tenant: agent.Tenant, Kind: kv.OwnerUser, Owner: "ann"}}
	save := func() {
		for i := range 3 {
			r.MustSave(t, record.Record{Text: fmt.Sprintf("note %d", i), TTL: time.Minute * time.Duration(i+1)})
			for _, scope := range others {
				if _, err := r.Save(t.Context(), scope, record.Record{Text: "note", TTL: time.Minute}, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	save()
	if n := kvtest.Undivide(t, r.engine, expiryList); n == 0 {
		t.Fatal("nothing stands in the list")
	}
	r.clock.Set(start.Add(time.Minute))
	save()
	swept := 0
	for minute := range 5 {
		r.clock.Set(start.Add(time.Duration(2+minute) * time.Minute))
		r.Reopen()
		swept += r.MustSweep(t)
	}
	if swept != 18 {
		t.Errorf("%d swept, want 18", swept)
	}
	for list, err := range expiryList.Scopes(t.Context(), r.engine) {
		t.Errorf("something is left in %s, %v", list, err)
	}
}

// testSweepFollowsChanges: what counts is when a record expires now.
func testSweepFollowsChanges(t *testing.T, r *rig) {
	expiry := func(id string, values record.Record) {
		t.Helper()
		r.MustUpdate(t, memory.Update{ID: id, Fields: memory.ExpiryField, Values: values})
	}
	for _, id := range []string{"longer", "shorter", "never", "deleted", "again"} {
		r.MustSave(t, record.Record{ID: id, Text: "note " + id, TTL: time.Hour})
	}
	expiry("longer", record.Record{TTL: 3 * time.Hour})
	expiry("shorter", record.Record{ExpireTime: start.Add(time.Minute)})
	expiry("never", record.Record{})
	r.MustDelete(t, "deleted")
	r.clock.Set(start.Add(time.Hour))
	// An expired record gives its names up even before it is swept.
	r.MustSave(t, record.Record{ID: "again", Text: "note again", TTL: 3 * time.Hour})
	r.MustCheck(t, agent)
	if n := r.MustSweep(t); n != 1 {
		t.Errorf("%d swept", n)
	}
	for _, id := range []string{"longer", "never", "again"} {
		r.MustGet(t, id)
	}
	if _, err := r.Get(t.Context(), agent, "shorter"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("shorter: %v", err)
	}
}

// testSweepChains: what an expired record had superseded is written anew when
// that goes, and may be about to go itself.
func testSweepChains(t *testing.T, r *rig) {
	rng := rand.New(rand.NewPCG(1, 2))
	for chain := range 12 {
		before := ""
		for link := range 5 {
			before = r.MustSave(t, record.Record{
				ID: fmt.Sprintf("%c of chain %d", 'a'+rng.IntN(26), chain*10+link), Text: fmt.Sprintf("link %d of chain %d", link, chain),
				Key: fmt.Sprint("chain ", chain), Supersedes: before, TTL: time.Duration(1+rng.IntN(3)) * time.Minute,
			}).ID
		}
	}
	swept := 0
	for range 3 {
		r.clock.Set(r.clock.Now().Add(time.Minute))
		swept += r.MustSweep(t)
		r.MustCheck(t, agent)
	}
	if left := keysOf(t, r.engine, agent, kv.Records); swept != 60 || left['r'] != 0 || left['k'] != 0 || left['t'] != 0 {
		t.Errorf("%d swept, left: %v", swept, left)
	}
}

// testSweepLongRecords: a commit of the sweep stays far below what a commit may
// be, or it would fail for ever.
func testSweepLongRecords(t *testing.T, r *rig) {
	const pairs = 12
	long := strings.Repeat("a b c d ", record.MaxTextBytes/8)
	for range pairs {
		old := r.MustSave(t, record.Record{Text: long})
		r.MustSave(t, record.Record{Text: "short", Supersedes: old.ID, TTL: time.Minute})
	}
	before := r.MustSequence(t)
	r.clock.Set(start.Add(time.Minute))
	if n := r.MustSweep(t); n != pairs {
		t.Errorf("%d swept", n)
	}
	if commits := r.MustSequence(t) - before; commits < pairs/3 {
		t.Errorf("%d commits wrote %d records of %d bytes", commits, pairs, len(long))
	}
}

// testSweepAllScopes: the sweep finds what expires whoever's it is.
func testSweepAllScopes(t *testing.T, r *rig) {
	for i := range 40 {
		scope := kv.Scope{Tenant: fmt.Sprint("tenant ", i%3), Kind: kv.OwnerUser, Owner: fmt.Sprint(i)}
		if _, err := r.Save(t.Context(), scope, record.Record{Text: "note", TTL: time.Duration(1+i%2) * time.Minute}, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{20, 20, 0} {
		r.clock.Set(r.clock.Now().Add(time.Minute))
		if n := r.MustSweep(t); n != want {
			t.Errorf("%d swept, want %d", n, want)
		}
	}
}

func TestExpiredGoInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := MustLivingRig(t)
		saved := r.MustSave(t, record.Record{Text: "gone soon", TTL: 90 * time.Second})
		time.Sleep(90*time.Second - time.Microsecond)
		r.MustGet(t, saved.ID)
		time.Sleep(time.Microsecond)
		if _, err := r.Get(t.Context(), agent, saved.ID); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("at the moment: %v", err)
		}
		time.Sleep(memory.DefaultSweepEvery)
		synctest.Wait()
		if n := keysOf(t, r.engine, agent, kv.Records); n['r'] != 0 || n['t'] != 0 {
			t.Errorf("left on the disk: %v", n)
		}
	})
}

// TestOldRecordsGoToo: records of version 0.1 are swept, even if nobody uses
// their scope any more.
func TestOldRecordsGoToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		MustLoadGeneration1(t, engine)
		before := keysOf(t, engine, agent, kv.Records)['r']
		r := &rig{engine: engine, clock: &clock{now: start.AddDate(500, 0, 0)}}
		r.opts = memory.Options{Now: r.clock.Now}
		r.open()
		t.Cleanup(func() { r.close() })
		time.Sleep(memory.DefaultSweepEvery)
		synctest.Wait()
		r.MustCheck(t, agent)
		if after := keysOf(t, engine, agent, kv.Records)['r']; after >= before || after == 0 {
			t.Errorf("%d of %d records left", after, before)
		}
	})
}

func TestSlidingTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := MustLivingRig(t)
		const span = 100 * time.Second
		read := r.MustSave(t, record.Record{Text: "read apples", SlidingTTL: span})
		found := r.MustSave(t, record.Record{Text: "found pears", SlidingTTL: span})
		listed := r.MustSave(t, record.Record{Text: "listed plums", SlidingTTL: span, Tags: []string{"listed"}})
		left := r.MustSave(t, record.Record{Text: "left alone", SlidingTTL: span})
		began := time.Now()
		if !read.ExpireTime.Equal(began.Add(span)) {
			t.Fatalf("expires at %v", read.ExpireTime)
		}
		for range 5 {
			time.Sleep(span/2 + time.Second)
			r.MustGet(t, read.ID)
			r.MustQuery(t, question.Question{Text: "pears"})
			if _, err := r.List(t.Context(), agent, memory.Listing{Filter: "tags:listed"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for _, id := range []string{read.ID, found.ID, listed.ID} {
			got := r.MustGet(t, id)
			if !got.ExpireTime.Equal(time.Now().Add(span)) || got.Version != 1 || got.SlidingTTL != span {
				t.Errorf("%s: %+v", got.Text, got)
			}
		}
		if _, err := r.Get(t.Context(), agent, left.ID); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("left alone: %v", err)
		}
		// Reading all the time does not write all the time.
		before := r.MustGet(t, read.ID).ExpireTime
		for range 9 {
			time.Sleep(time.Second)
			r.MustGet(t, read.ID)
			synctest.Wait()
		}
		if got := r.MustGet(t, read.ID); !got.ExpireTime.Equal(before) {
			t.Errorf("moved by less than a tenth: %v", got.ExpireTime.Sub(before))
		}
		time.Sleep(span)
		if _, err := r.Get(t.Context(), agent, read.ID); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("not read any more: %v", err)
		}
	})
}

// MustLivingRig returns a rig in a bubble: its store has the bubble's clock and
// sweeps by itself.
func MustLivingRig(tb testing.TB) *rig {
	tb.Helper()
	r := &rig{engine: memkv.New(nil), opts: memory.Options{PackAfter: 3}}
	r.open()
	tb.Cleanup(func() {
		r.MustCheck(tb, agent)
		r.close()
	})
	return r
}
