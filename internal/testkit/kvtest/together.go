package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func togetherCases() []testCase {
	return []testCase{
		{name: "no update is lost", run: testNoLostUpdate},
		{name: "any guards never conflict", run: testAnyTogether},
		{name: "blind writes starve nobody", run: testBlindStarvesNobody},
		{name: "one of many wins", run: testOneWins},
		{name: "keyspaces change together", run: testAtomicKeyspaces},
		{name: "big and small", run: testBigAndSmall},
	}
}

// testNoLostUpdate lets clients add to one counter by compare-and-set.
func testNoLostUpdate(t *testing.T, e kv.Engine) {
	const clients, each = 8, 25
	var users sync.WaitGroup
	for range clients {
		users.Go(func() {
			for range each {
				if err := addOne(t.Context(), e, alpha()); err != nil {
					t.Errorf("add one: %v", err)
				}
			}
		})
	}
	users.Wait()
	wantGet(t, e, []string{"n"}, strconv.Itoa(clients*each))
	wantSequence(t, e, ref(kv.Records, alpha()), clients*each)
}

// addOne raises the counter "n" of a scope, again and again until no other
// client comes between.
func addOne(ctx context.Context, e kv.Engine, s kv.Scope) error {
	for {
		sequences, err := e.Sequence(ctx, ref(kv.Records, s))
		if err != nil {
			return err
		}
		values, err := e.Get(ctx, kv.Records, key(s, "n"))
		if err != nil {
			return err
		}
		n := 0
		if values[0] != nil {
			if n, err = strconv.Atoi(string(values[0])); err != nil {
				return err
			}
		}
		err = e.Commit(ctx, put(at(kv.Records, s, sequences[0]), fmt.Sprintf("n=%d", n+1)))
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

func testAnyTogether(t *testing.T, e kv.Engine) {
	const clients, each = 16, 20
	var users sync.WaitGroup
	for i := range clients {
		users.Go(func() {
			for range each {
				if err := e.Commit(t.Context(), put(anyOf(kv.Log, alpha()), fmt.Sprintf("%d=1", i))); err != nil {
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	users.Wait()
	wantSequence(t, e, ref(kv.Log, alpha()), 0)
}

// testBlindStarvesNobody guards a ref, commit after commit and without ever
// trying one again, while others write to it blindly.
func testBlindStarvesNobody(t *testing.T, e kv.Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	var users sync.WaitGroup
	for i := range 8 {
		users.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c := put(anyOf(kv.Blobs, alpha()), fmt.Sprintf("%d=%d", i, n))
				c.Lazy = true
				if err := e.Commit(t.Context(), c); err != nil {
					t.Errorf("blind commit: %v", err)
					return
				}
			}
		})
	}
	for n := range uint64(50) {
		mustCommit(t, e, put(at(kv.Blobs, alpha(), n), "n="+fmt.Sprint(n)))
	}
	cancel()
	users.Wait()
}

// testOneWins starts commits that all expect the same sequence.
func testOneWins(t *testing.T, e kv.Engine) {
	for round := range uint64(10) {
		var users sync.WaitGroup
		var mu sync.Mutex
		winners := []string{}
		for i := range 16 {
			users.Go(func() {
				value := fmt.Sprint(i)
				err := e.Commit(t.Context(), put(at(kv.Records, alpha(), round), "a="+value))
				if err != nil {
					wantError(t, "commit", err, kv.ErrConflict)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, value)
			})
		}
		users.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d: winners %v, want one", round, winners)
		}
		wantGet(t, e, []string{"a"}, winners[0])
	}
}

// testAtomicKeyspaces has clients write the same number into two keyspaces
// while readers look for a moment at which they differ.
func testAtomicKeyspaces(t *testing.T, e kv.Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				compareKeyspaces(t, e)
			}
		})
	}
	for i := range 4 {
		writers.Go(func() {
			for n := range 50 {
				if err := e.Commit(t.Context(), twin(fmt.Sprintf("%d.%d", i, n))); err != nil {
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	compareKeyspaces(t, e)
}

// twin commits one value to the records and the log of alpha.
func twin(value string) kv.Commit {
	k := key(alpha(), "n")
	return kv.Commit{
		Guards: []kv.Guard{anyOf(kv.Records, alpha()), anyOf(kv.Log, alpha())},
		Batch: batchOf(
			kv.Op{Keyspace: kv.Records, Key: k, Value: []byte(value)},
			kv.Op{Keyspace: kv.Log, Key: k, Value: []byte(value)},
		),
	}
}

func compareKeyspaces(t *testing.T, e kv.Engine) {
	s, err := e.Snapshot(t.Context())
	if err != nil {
		t.Errorf("snapshot: %v", err)
		return
	}
	defer s.Close()
	records, err1 := s.Get(t.Context(), kv.Records, key(alpha(), "n"))
	log, err2 := s.Get(t.Context(), kv.Log, key(alpha(), "n"))
	sequences, err3 := s.Sequence(t.Context(), ref(kv.Records, alpha()), ref(kv.Log, alpha()))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Errorf("read: %v", err)
		return
	}
	if string(records[0]) != string(log[0]) || sequences[0] != sequences[1] {
		t.Errorf("half a commit: records %q at %d, log %q at %d", records[0], sequences[0], log[0], sequences[1])
	}
}

// testBigAndSmall mixes commits that fill a whole join with small ones.
func testBigAndSmall(t *testing.T, e kv.Engine) {
	var users sync.WaitGroup
	for i := range 8 {
		s := kv.AgentScope("acme", fmt.Sprint(i))
		users.Go(func() {
			c := put(at(kv.Blobs, s, 0), "small=1")
			for j := range 6 * (i % 2) {
				c.Batch.Put(kv.Blobs, s.Key('b', []byte{byte(j)}), sized(1<<20))
			}
			if err := e.Commit(t.Context(), c); err != nil {
				t.Errorf("commit of %d bytes: %v", c.Batch.Size(), err)
				return
			}
			wantStored(t, e, nil, c.Batch)
		})
	}
	users.Wait()
}
