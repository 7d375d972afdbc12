package kvtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func lifecycleCases() []testCase {
	return []testCase{
		{name: "closed", run: testClosed},
		{name: "closing beside everything", run: testCloseBeside},
		{name: "ended context", run: testContextEnded},
		{name: "context ends during a scan", run: testContextInScan},
		{name: "context ends while commits wait", run: testContextWaiting},
	}
}

func testClosed(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	if err := e.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	wantReadsClosed(t, e)
	_, err := e.Snapshot(t.Context())
	wantError(t, "snapshot", err, kv.ErrClosed)
	wantError(t, "commit", e.Commit(t.Context(), put(anyOf(kv.Records, alpha()), "a=2")), kv.ErrClosed)
	wantError(t, "bad commit", e.Commit(t.Context(), kv.Commit{}), kv.ErrClosed)
	wantError(t, "close", e.Close(), kv.ErrClosed)
	if d, ok := e.(kv.RangeDropper); ok {
		wantError(t, "drop range", d.DropRange(t.Context(), kv.Records, kv.Range{}), kv.ErrClosed)
	}
	if c, ok := e.(kv.Checkpointer); ok {
		wantError(t, "checkpoint", c.Checkpoint(t.Context(), t.TempDir()+"/copy"), kv.ErrClosed)
	}
}

// testCloseBeside closes an engine under load. Every call ends, with an answer
// or with ErrClosed.
func testCloseBeside(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2", "c=3")
	var users sync.WaitGroup
	begun := make(chan struct{}, 64)
	for i := range 8 {
		users.Go(func() {
			s := kv.AgentScope("acme", fmt.Sprint(i))
			for {
				err := useOnce(t.Context(), e, s)
				if err != nil {
					wantError(t, "call beside close", err, kv.ErrClosed)
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	<-begun
	if err := e.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	users.Wait()
}

// useOnce makes one call of each kind, some nested in a scan.
func useOnce(ctx context.Context, e kv.Engine, s kv.Scope) error {
	if err := e.Commit(ctx, put(anyOf(kv.Records, s), "a=1")); err != nil {
		return err
	}
	snapshot, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for _, err := range snapshot.Scan(ctx, kv.Records, kv.Range{}) {
		if err != nil {
			return err
		}
		if _, err := e.Get(ctx, kv.Records, key(s, "a")); err != nil {
			return err
		}
	}
	_, err = e.Sequence(ctx, ref(kv.Records, s))
	return err
}

func testContextEnded(t *testing.T, e kv.Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Get(ctx, kv.Records, key(alpha(), "a"))
	wantError(t, "get", err, context.Canceled)
	_, err = e.Sequence(ctx, ref(kv.Records, alpha()))
	wantError(t, "sequence", err, context.Canceled)
	_, err = e.Snapshot(ctx)
	wantError(t, "snapshot", err, context.Canceled)
	wantError(t, "scan", scanError(e.Scan(ctx, kv.Records, kv.Range{})), context.Canceled)
	wantError(t, "commit", e.Commit(ctx, put(anyOf(kv.Records, alpha()), "a=1")), context.Canceled)
	wantEmpty(t, e, alpha())
}

func testContextInScan(t *testing.T, e kv.Engine) {
	const keys = 1000
	batch := new(kv.Batch)
	for i := range keys {
		batch.Put(kv.Records, key(alpha(), fmt.Sprintf("%04d", i)), nil)
	}
	mustCommit(t, e, kv.Commit{Guards: []kv.Guard{anyOf(kv.Records, alpha())}, Batch: batch})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	var last error
	for _, err := range e.Scan(ctx, kv.Records, kv.Range{}) {
		cancel()
		seen++
		last = err
	}
	wantError(t, "scan", last, context.Canceled)
	if seen >= keys {
		t.Errorf("scan went on to its end")
	}
}

// testContextWaiting ends the contexts of commits that may wait for others:
// each is either written or refused as canceled, and never both.
func testContextWaiting(t *testing.T, e kv.Engine) {
	const clients, rounds = 8, 20
	var written [clients]uint64
	var users sync.WaitGroup
	for i := range clients {
		s := kv.AgentScope("acme", fmt.Sprint(i))
		users.Go(func() {
			for range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				switch err := e.Commit(ctx, put(at(kv.Records, s, written[i]), "a=1")); err {
				case nil:
					written[i]++
				default:
					wantError(t, "commit", err, context.Canceled)
				}
			}
		})
	}
	users.Wait()
	for i, n := range written {
		wantSequence(t, e, ref(kv.Records, kv.AgentScope("acme", fmt.Sprint(i))), n)
	}
}
