package blob_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// collector counts the keys of blobs that a process deletes.
type collector struct {
	*kvtest.Peer
	deleted atomic.Int64
}

func (c *collector) Commit(ctx context.Context, commit kv.Commit) error {
	if err := c.Peer.Commit(ctx, commit); err != nil {
		return err
	}
	for _, op := range commit.Batch.Ops() {
		if op.Delete && op.Keyspace == kv.Blobs {
			c.deleted.Add(1)
		}
	}
	return nil
}

// Of two processes one collects a tenant's garbage; the other goes on when the first
// has ended.
func TestOneProcessCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var engines []*collector
		var stores []*fixture
		for _, peer := range kvtest.Peers(2) {
			engine := &collector{Peer: peer}
			f := newFixtureOn(t, engine, blob.Options{Sessions: &world{}, CollectEvery: 10 * time.Minute})
			f.now = late
			engines, stores = append(engines, engine), append(stores, f)
			time.Sleep(4 * time.Minute) // they collect by turns
		}
		n := 0
		stage := func(times int) {
			for range times {
				n++
				stores[n%2].now = noon
				stores[n%2].mustStage(t, alice, noise(uint64(n), 50), blob.Entry{StepID: fmt.Sprintf("step_%03d", n), Category: "read"})
				stores[n%2].now = late
				time.Sleep(3 * time.Minute)
			}
		}
		stage(40)
		busy, idle := 0, 1
		if engines[1].deleted.Load() > 0 {
			busy, idle = 1, 0
		}
		if n, m := engines[busy].deleted.Load(), engines[idle].deleted.Load(); n == 0 || m != 0 {
			t.Fatalf("one process deleted %d keys and the other %d, want only one to", n, m)
		}
		if err := stores[busy].Store.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Minute)
		if engines[idle].deleted.Load() == 0 {
			t.Error("nobody went on when the first had ended")
		}
		if err := stores[idle].Store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
