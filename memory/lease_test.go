package memory_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// bridge is one of two processes on a store.
type bridge struct {
	*memory.Store
	engine  *counted
	writer  *kv.Writer
	embeds  embedCounter
	stopped sync.Once
}

// counted counts the commits that delete entries of the list of what expires.
type counted struct {
	*kvtest.Peer
	sweeps atomic.Int64
	dead   atomic.Bool
}

func (c *counted) Commit(ctx context.Context, commit kv.Commit) error {
	if c.dead.Load() {
		return kv.ErrFailed
	}
	if err := c.Peer.Commit(ctx, commit); err != nil {
		return err
	}
	for _, op := range commit.Batch.Ops() {
		if scope, _, err := kv.SplitKey(op.Key); err == nil && op.Delete && expiryList.Has(scope) {
			c.sweeps.Add(1)
		}
	}
	return nil
}

// embedCounter is an embedder that takes a while and counts how often it was given
// each text.
type embedCounter struct {
	meanings
	mu    sync.Mutex
	times map[string]int // guarded by mu
}

func (e *embedCounter) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	for _, text := range texts {
		e.times[text]++
	}
	e.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return e.meanings.Embed(ctx, texts)
}

func (e *embedCounter) count() (texts, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.times {
		most = max(most, n)
	}
	return len(e.times), most
}

func bridges(t *testing.T, embedding bool) (a, b *bridge) {
	peers := kvtest.Peers(2)
	open := func(peer *kvtest.Peer) *bridge {
		r := &bridge{engine: &counted{Peer: peer}, embeds: embedCounter{meanings: meanings{space: "meanings/1"}, times: make(map[string]int)}}
		r.writer = kv.NewWriter(r.engine, nil)
		opts := &memory.Options{PackAfter: 16}
		if embedding {
			opts.Embedder = &r.embeds
		}
		r.Store = memory.New(r.engine, r.writer, opts)
		t.Cleanup(r.MustStop(t))
		return r
	}
	return open(peers[0]), open(peers[1])
}

// MustStop returns what ends the process in order, once.
func (r *bridge) MustStop(t *testing.T) func() {
	return func() {
		r.stopped.Do(func() {
			if err := r.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			_ = r.writer.Close()
			_ = r.engine.Close()
		})
	}
}

func (r *bridge) MustSave(t *testing.T, record record.Record) {
	t.Helper()
	if _, err := r.Save(t.Context(), agent, record, ""); err != nil {
		t.Fatal(err)
	}
}

func (r *bridge) MustWait(t *testing.T, want int) {
	t.Helper()
	if n, err := r.WaitingForVectors(t.Context(), agent); err != nil || n != want {
		t.Errorf("%d records wait for a vector (%v), want %d", n, err, want)
	}
}

// Of two processes one takes off the disk what has expired; the other goes on when
// the first is gone.
func TestOneProcessSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := bridges(t, false)
		save := func(to *bridge) {
			for i := range 10 {
				to.MustSave(t, record.Record{Text: fmt.Sprintf("note %d", i), TTL: time.Minute * time.Duration(i+1)})
			}
		}
		save(a)
		time.Sleep(15 * time.Minute)
		busy, idle := a, b
		if b.engine.sweeps.Load() > 0 {
			busy, idle = b, a
		}
		if n, m := busy.engine.sweeps.Load(), idle.engine.sweeps.Load(); n == 0 || m != 0 {
			t.Fatalf("one process swept %d times and the other %d, want only one to", n, m)
		}
		save(idle)
		time.Sleep(2 * time.Minute)
		busy.engine.dead.Store(true) // without giving back its leases
		busy.MustStop(t)()
		time.Sleep(15 * time.Minute)
		if n := idle.engine.sweeps.Load(); n == 0 {
			t.Error("nobody went on when the first was gone")
		}
		for pair, err := range idle.engine.Scan(t.Context(), kv.Records, kv.Prefix(agent.Key('t'))) {
			t.Errorf("left behind: %q, %v", pair.Key, err)
		}
	})
}

// While the embedder of one process fails, another makes the vectors.
func TestTheOtherEmbeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := bridges(t, true)
		a.embeds.fails.Store(true)
		a.MustSave(t, record.Record{Text: "The automobile and its engine"})
		b.MustSave(t, record.Record{Text: "Another vehicle"})
		time.Sleep(5 * time.Minute)
		a.MustWait(t, 0)
		if n, _ := b.embeds.count(); n != 2 {
			t.Errorf("the other process embedded %d texts, want 2", n)
		}
	})
}

// Of two processes one makes the vectors, of what either saves; each record is given
// to an embedder once.
func TestEachRecordIsEmbeddedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := bridges(t, true)
		const records = 40
		for i := range records {
			to := a
			if i%2 == 1 {
				to = b
			}
			to.MustSave(t, record.Record{Text: fmt.Sprintf("The automobile %d and its engine", i)})
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Minute)
		a.MustWait(t, 0)
		n, _ := a.embeds.count()
		m, _ := b.embeds.count()
		if n+m != records {
			t.Errorf("%d and %d texts were embedded, want %d in all", n, m, records)
		}

		// Whoever is left makes the vectors of what the other saved last.
		a.MustSave(t, record.Record{Text: "The last automobile"})
		time.Sleep(100 * time.Millisecond)
		a.engine.dead.Store(true)
		a.MustStop(t)()
		time.Sleep(5 * time.Minute)
		b.MustWait(t, 0)
	})
}

// Reembed of two processes at once gives each record to an embedder once, and both tell
// that all is done.
func TestReembedOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := bridges(t, true)
		const records = 300 // more than one part
		for i := range records {
			a.MustSave(t, record.Record{Text: fmt.Sprintf("The automobile %d", i), Embedding: []float32{1, 2}, EmbeddingSpace: "old"})
		}
		var both sync.WaitGroup
		for _, r := range []*bridge{a, b} {
			both.Go(func() {
				var last, total int64
				err := r.Reembed(t.Context(), agent, func(_ string, d, n int64) error { last, total = d, n; return nil })
				if err != nil || last != records || total != records {
					t.Errorf("%d of %d are done: %v", last, total, err)
				}
			})
		}
		both.Wait()
		n, most := a.embeds.count()
		m, other := b.embeds.count()
		if n+m != records || most > 1 || other > 1 {
			t.Errorf("%d and %d texts were embedded, up to %d times, want %d in all, once each", n, m, max(most, other), records)
		}
		spaces, err := a.VectorSpaces(t.Context(), agent)
		if err != nil || len(spaces) != 1 || spaces[0].Name != "meanings/1" {
			t.Errorf("spaces %+v, %v", spaces, err)
		}
	})
}
