package kvtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func commitCases() []testCase {
	return []testCase{
		{name: "sequences start at zero and go up by one", run: testSequences},
		{name: "exact guard", run: testExactGuard},
		{name: "the last commit of a ref", run: testLastCommits},
		{name: "any guard", run: testAnyGuard},
		{name: "a blind write disturbs no guard", run: testBlindDisturbsNobody},
		{name: "exact and blind together", run: testExactAndBlind},
		{name: "watched keys", run: testWatched},
		{name: "a watched key in the same commit", run: testWatchedAndWritten},
		{name: "watched keys lie in guarded scopes", run: testWatchedRefused},
		{name: "several guards, all or nothing", run: testSeveralGuards},
		{name: "conflict names the first guard that fails", run: testConflictNames},
		{name: "guards alone", run: testGuardsAlone},
		{name: "empty batch", run: testEmptyBatch},
		{name: "the later change of a key wins", run: testLaterWins},
		{name: "deleting", run: testDelete},
		{name: "several keyspaces at once", run: testSeveralKeyspaces},
		{name: "lazy", run: testLazy},
		{name: "unguarded", run: testUnguarded},
		{name: "reserved", run: testReservedRefused},
		{name: "bad guards", run: testBadGuards},
	}
}

func testSequences(t *testing.T, e kv.Engine) {
	wantSequence(t, e, ref(kv.Records, alpha()), 0)
	for i := range uint64(300) {
		mustCommit(t, e, put(at(kv.Records, alpha(), i), "a=1"))
	}
	sequences, err := e.Sequence(t.Context(), ref(kv.Records, alpha()), ref(kv.Log, alpha()), ref(kv.Records, alph()))
	if err != nil || sequences[0] != 300 || sequences[1] != 0 || sequences[2] != 0 {
		t.Errorf("sequences = %v, %v, want [300 0 0]", sequences, err)
	}
}

func testExactGuard(t *testing.T, e kv.Engine) {
	mustCommit(t, e, put(at(kv.Records, alpha(), 0), "a=1"))
	for _, wrong := range []uint64{0, 2, 1 << 63} {
		err := e.Commit(t.Context(), put(at(kv.Records, alpha(), wrong), "a=2", "b=2"))
		wantError(t, "commit at a wrong sequence", err, kv.ErrConflict)
	}
	wantScan(t, e, kv.Records, kv.Range{}, "a=1")
	wantSequence(t, e, ref(kv.Records, alpha()), 1)
	mustCommit(t, e, put(at(kv.Records, alpha(), 1), "a=2"))
	wantScan(t, e, kv.Records, kv.Range{}, "a=2")
	wantSequence(t, e, ref(kv.Records, alpha()), 2)
}

func testLastCommits(t *testing.T, e kv.Engine) {
	records, log := ref(kv.Records, alpha()), ref(kv.Log, alpha())
	want := func(what string, want ...kv.LastCommit) {
		t.Helper()
		got, err := e.LastCommits(t.Context(), records, log)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: last commits %+v, %v, want %+v", what, got, err, want)
		}
	}
	commit := func(token uint64, guards ...kv.Guard) error {
		return e.Commit(t.Context(), kv.Commit{Guards: guards, Token: token})
	}
	want("at first", kv.LastCommit{}, kv.LastCommit{})
	if err := commit(77, at(kv.Records, alpha(), 0), at(kv.Log, alpha(), 0)); err != nil {
		t.Fatal(err)
	}
	want("both raised", kv.LastCommit{Sequence: 1, Token: 77}, kv.LastCommit{Sequence: 1, Token: 77})
	if err := commit(math.MaxUint64, at(kv.Records, alpha(), 1), anyOf(kv.Log, alpha())); err != nil {
		t.Fatal(err)
	}
	wantError(t, "commit at an old sequence", commit(5, at(kv.Records, alpha(), 1)), kv.ErrConflict)
	want("one raised", kv.LastCommit{Sequence: 2, Token: math.MaxUint64}, kv.LastCommit{Sequence: 1, Token: 77})
	if err := commit(0, at(kv.Records, alpha(), 2)); err != nil {
		t.Fatal(err)
	}
	want("raised without a token", kv.LastCommit{Sequence: 3}, kv.LastCommit{Sequence: 1, Token: 77})
	wantSequence(t, e, records, 3)
	_, err := e.LastCommits(t.Context(), kv.Ref{})
	wantError(t, "last commit of an empty scope", err, kv.ErrBadScope)
}

func testAnyGuard(t *testing.T, e kv.Engine) {
	for range 3 {
		g := anyOf(kv.Records, alpha())
		g.Sequence = 77 // ignored
		mustCommit(t, e, put(g, "a=1"))
	}
	wantScan(t, e, kv.Records, kv.Range{}, "a=1")
	wantSequence(t, e, ref(kv.Records, alpha()), 0)
}

// testBlindDisturbsNobody puts blind writes between the reading of a sequence and
// the commit that guards it.
func testBlindDisturbsNobody(t *testing.T, e kv.Engine) {
	for n := range uint64(20) {
		mustCommit(t, e, put(anyOf(kv.Blobs, alpha()), "blind="+fmt.Sprint(n)))
		mustCommit(t, e, put(at(kv.Blobs, alpha(), n), "exact="+fmt.Sprint(n)))
	}
	wantScan(t, e, kv.Blobs, kv.Range{}, "blind=19", "exact=19")
	wantSequence(t, e, ref(kv.Blobs, alpha()), 20)
}

func testExactAndBlind(t *testing.T, e kv.Engine) {
	c := kv.Commit{
		Guards: []kv.Guard{at(kv.Log, alpha(), 0), anyOf(kv.Blobs, alpha())},
		Batch: batchOf(
			kv.Op{Keyspace: kv.Log, Key: key(alpha(), "a"), Value: []byte("1")},
			kv.Op{Keyspace: kv.Blobs, Key: key(alpha(), "b"), Value: []byte("2")},
		),
	}
	mustCommit(t, e, c)
	wantSequence(t, e, ref(kv.Log, alpha()), 1)
	wantSequence(t, e, ref(kv.Blobs, alpha()), 0)
	c.Batch = batchOf(kv.Op{Keyspace: kv.Blobs, Key: key(alpha(), "b"), Value: []byte("3")})
	wantError(t, "exact guard beside a blind one", e.Commit(t.Context(), c), kv.ErrConflict)
	wantScan(t, e, kv.Blobs, kv.Range{}, "b=2")
}

// watching returns a commit of a pair that is refused unless a key has a value;
// nil: unless it is missing.
func watching(name string, value []byte, pair string) kv.Commit {
	c := put(anyOf(kv.Records, alpha()), pair)
	c.Watched = []kv.Watch{{Keyspace: kv.Records, Key: key(alpha(), name), Value: value}}
	return c
}

func testWatched(t *testing.T, e kv.Engine) {
	mustCommit(t, e, watching("a", nil, "b=1"))
	err := e.Commit(t.Context(), watching("a", []byte{}, "b=2"))
	wantError(t, "watched key is missing", err, kv.ErrConflict)
	mustCommit(t, e, put(anyOf(kv.Records, alpha()), "a=x", "empty="))
	for _, wrong := range [][]byte{nil, {}, []byte("y")} {
		err := e.Commit(t.Context(), watching("a", wrong, "b=2"))
		var conflict *kv.ConflictError
		if !errors.As(err, &conflict) || conflict.Key != string(key(alpha(), "a")) || conflict.Keyspace != kv.Records {
			t.Errorf("watched key has another value than %q: error %v, want a conflict that names it", wrong, err)
		}
	}
	wantError(t, "watched key is empty, not missing", e.Commit(t.Context(), watching("empty", nil, "b=2")), kv.ErrConflict)
	wantScan(t, e, kv.Records, kv.Range{}, "a=x", "b=1", "empty=")
	mustCommit(t, e, watching("a", []byte("x"), "b=3"))
	mustCommit(t, e, watching("empty", []byte{}, "c=4"))
	wantScan(t, e, kv.Records, kv.Range{}, "a=x", "b=3", "c=4", "empty=")
}

// testWatchedAndWritten has commits at the same time that each rely on the value
// which all of them change: one wins.
func testWatchedAndWritten(t *testing.T, e kv.Engine) {
	for round := range 10 {
		var users sync.WaitGroup
		var won atomic.Int64
		before := []byte(nil)
		if round > 0 {
			before = []byte(fmt.Sprint(round - 1))
		}
		for range 16 {
			users.Go(func() {
				err := e.Commit(t.Context(), watching("a", before, fmt.Sprint("a=", round)))
				if err == nil {
					won.Add(1)
				} else {
					wantError(t, "commit", err, kv.ErrConflict)
				}
			})
		}
		users.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d commits won, want one", round, won.Load())
		}
	}
}

func testWatchedRefused(t *testing.T, e kv.Engine) {
	for what, c := range map[string]struct {
		watch kv.Watch
		want  error
	}{
		"other scope": {kv.Watch{Keyspace: kv.Records, Key: key(alph(), "x")}, kv.ErrUnguarded},
		"reserved":    {kv.Watch{Keyspace: kv.Records, Key: kv.SequenceKey(alpha())}, kv.ErrBadKey},
		"too large":   {kv.Watch{Keyspace: kv.Records, Key: key(alpha(), "x"), Value: sized(kv.MaxWatchBytes)}, kv.ErrLimit},
	} {
		commit := put(anyOf(kv.Records, alpha()), "a=1")
		commit.Watched = []kv.Watch{c.watch}
		wantRefused(t, e, what, commit, c.want)
	}
}

func testSeveralGuards(t *testing.T, e kv.Engine) {
	commit := func(records, log uint64) error {
		return e.Commit(t.Context(), kv.Commit{
			Guards: []kv.Guard{at(kv.Records, alpha(), records), at(kv.Log, alph(), log)},
			Batch: batchOf(
				kv.Op{Keyspace: kv.Records, Key: key(alpha(), "a"), Value: []byte("1")},
				kv.Op{Keyspace: kv.Log, Key: key(alph(), "b"), Value: []byte("2")},
			),
		})
	}
	wantError(t, "first guard wrong", commit(1, 0), kv.ErrConflict)
	wantError(t, "second guard wrong", commit(0, 1), kv.ErrConflict)
	wantEmpty(t, e, alpha())
	wantEmpty(t, e, alph())
	if err := commit(0, 0); err != nil {
		t.Fatal(err)
	}
	wantScan(t, e, kv.Records, kv.Range{}, "a=1")
	wantScan(t, e, kv.Log, kv.Range{}, "b=2")
	wantSequence(t, e, ref(kv.Records, alpha()), 1)
	wantSequence(t, e, ref(kv.Log, alph()), 1)
	wantSequence(t, e, ref(kv.Log, alpha()), 0)
}

func testConflictNames(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	fill(t, e, "a=2")
	guards := []kv.Guard{anyOf(kv.Index, alpha()), at(kv.Log, alpha(), 0), at(kv.Records, alpha(), 1), at(kv.Blobs, alpha(), 9)}
	err := e.Commit(t.Context(), kv.Commit{Guards: guards})
	var conflict *kv.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, kv.ErrConflict) {
		t.Fatalf("error %v, want a conflict", err)
	}
	if conflict.Guard != guards[2] || conflict.Found != 2 {
		t.Errorf("conflict names %+v, found %d; want %+v, 2", conflict.Guard, conflict.Found, guards[2])
	}
}

func testGuardsAlone(t *testing.T, e kv.Engine) {
	mustCommit(t, e, kv.Commit{Guards: []kv.Guard{at(kv.System, alpha(), 0)}})
	wantSequence(t, e, ref(kv.System, alpha()), 1)
	wantScan(t, e, kv.System, kv.Range{})
}

func testEmptyBatch(t *testing.T, e kv.Engine) {
	mustCommit(t, e, kv.Commit{Guards: []kv.Guard{at(kv.System, alpha(), 0)}, Batch: new(kv.Batch)})
	wantSequence(t, e, ref(kv.System, alpha()), 1)
}

func testLaterWins(t *testing.T, e kv.Engine) {
	a, b := key(alpha(), "a"), key(alpha(), "b")
	mustCommit(t, e, kv.Commit{
		Guards: []kv.Guard{anyOf(kv.Records, alpha())},
		Batch: batchOf(
			kv.Op{Key: a, Value: []byte("1")}, kv.Op{Key: b, Value: []byte("1")},
			kv.Op{Key: a, Delete: true}, kv.Op{Key: b, Value: []byte("2")},
			kv.Op{Key: a, Value: []byte("3")}, kv.Op{Key: b, Delete: true},
		),
	})
	wantScan(t, e, kv.Records, kv.Range{}, "a=3")
}

func testDelete(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2")
	mustCommit(t, e, kv.Commit{
		Guards: []kv.Guard{anyOf(kv.Records, alpha())},
		Batch:  batchOf(kv.Op{Key: key(alpha(), "a"), Delete: true}, kv.Op{Key: key(alpha(), "missing"), Delete: true}),
	})
	wantGet(t, e, []string{"a", "b"}, "-", "2")
	wantScan(t, e, kv.Records, kv.Range{}, "b=2")
}

func testSeveralKeyspaces(t *testing.T, e kv.Engine) {
	c := kv.Commit{Batch: new(kv.Batch)}
	for _, ks := range kv.Keyspaces() {
		c.Guards = append(c.Guards, at(ks, alpha(), 0))
		c.Batch.Put(ks, key(alpha(), "x"), []byte(ks.String()))
	}
	mustCommit(t, e, c)
	for _, ks := range kv.Keyspaces() {
		wantScan(t, e, ks, kv.Range{}, "x="+ks.String())
		wantSequence(t, e, ref(ks, alpha()), 1)
	}
}

func testLazy(t *testing.T, e kv.Engine) {
	c := put(at(kv.Records, alpha(), 0), "a=1")
	c.Lazy = true
	mustCommit(t, e, c)
	wantScan(t, e, kv.Records, kv.Range{}, "a=1")
	err := e.Commit(t.Context(), c)
	wantError(t, "lazy commit at a wrong sequence", err, kv.ErrConflict)
	mustCommit(t, e, put(at(kv.Records, alpha(), 1), "b=2"))
	wantScan(t, e, kv.Records, kv.Range{}, "a=1", "b=2")
}

// wantRefused checks that a commit is refused with an error of a kind and that
// nothing of it was written.
func wantRefused(t *testing.T, e kv.Engine, what string, c kv.Commit, want error) {
	t.Helper()
	wantError(t, what, e.Commit(t.Context(), c), want)
	wantEmpty(t, e, alpha())
	wantEmpty(t, e, alph())
}

func testUnguarded(t *testing.T, e kv.Engine) {
	good := kv.Op{Keyspace: kv.Records, Key: key(alpha(), "good")}
	guards := []kv.Guard{anyOf(kv.Records, alpha())}
	for what, bad := range map[string]kv.Op{
		"other scope":    {Keyspace: kv.Records, Key: key(alph(), "x")},
		"other keyspace": {Keyspace: kv.Log, Key: key(alpha(), "x")},
		"no keyspace":    {Keyspace: 200, Key: key(alpha(), "x")},
		"no scope":       {Keyspace: kv.Records, Key: []byte("x")},
		"no key":         {Keyspace: kv.Records},
		"scope alone":    {Keyspace: kv.Records, Key: alpha().AppendPrefix(nil)},
		"delete":         {Keyspace: kv.Records, Key: key(alph(), "x"), Delete: true},
	} {
		wantRefused(t, e, what, kv.Commit{Guards: guards, Batch: batchOf(good, bad)}, kv.ErrUnguarded)
	}
	wantRefused(t, e, "no guard", kv.Commit{Batch: batchOf(good)}, kv.ErrUnguarded)
	wantRefused(t, e, "nothing", kv.Commit{}, kv.ErrUnguarded)
}

func testReservedRefused(t *testing.T, e kv.Engine) {
	good := kv.Op{Keyspace: kv.Records, Key: key(alpha(), "good")}
	guards := []kv.Guard{anyOf(kv.Records, alpha())}
	for _, k := range [][]byte{kv.SequenceKey(alpha()), append(kv.SequenceKey(alpha()), 'x')} {
		for _, del := range []bool{false, true} {
			bad := kv.Op{Keyspace: kv.Records, Key: k, Delete: del}
			wantRefused(t, e, "reserved key", kv.Commit{Guards: guards, Batch: batchOf(good, bad)}, kv.ErrBadKey)
		}
	}
}

func testBadGuards(t *testing.T, e kv.Engine) {
	twice := []kv.Guard{anyOf(kv.Records, alpha()), at(kv.Records, alpha(), 0)}
	wantRefused(t, e, "guard named twice", kv.Commit{Guards: twice}, kv.ErrUnguarded)
	for _, g := range []kv.Guard{
		anyOf(200, alpha()),
		anyOf(kv.Records, kv.Scope{}),
		anyOf(kv.Records, kv.Scope{Tenant: "a\x00b", Kind: kv.OwnerUser, Owner: "x"}),
		anyOf(kv.Records, kv.Scope{Tenant: "a", Kind: '?', Owner: "x"}),
	} {
		wantRefused(t, e, "bad guard", kv.Commit{Guards: []kv.Guard{anyOf(kv.Records, alpha()), g}}, kv.ErrBadScope)
	}
}
