package kvtest

import (
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Opener opens the engine that keeps its data in dir, empty at first.
type Opener func(tb testing.TB, dir string) kv.Engine

// RunReopen checks what an engine owes that keeps data beyond Close.
func RunReopen(t *testing.T, opener Opener) {
	t.Helper()
	t.Run("keeps data and sequences", func(t *testing.T) { testReopen(t, opener) })
	t.Run("goes on from where it was", func(t *testing.T) { testReopenGoesOn(t, opener) })
	t.Run("keeps what was dropped away", func(t *testing.T) { testReopenDropped(t, opener) })
	t.Run("checkpoint", func(t *testing.T) { testCheckpoint(t, opener) })
}

// at returns a factory for one directory.
func (o Opener) at(dir string) Factory {
	return func(tb testing.TB) kv.Engine {
		tb.Helper()
		return o(tb, dir)
	}
}

func mustClose(tb testing.TB, e kv.Engine) {
	tb.Helper()
	if err := e.Close(); err != nil {
		tb.Fatalf("close: %v", err)
	}
}

func testReopen(t *testing.T, opener Opener) {
	dir := t.TempDir()
	e := open(t, opener.at(dir))
	fill(t, e, "a=1", "b=2", "empty=")
	fill(t, e, "a=3")
	big := kv.Commit{Guards: []kv.Guard{at(kv.Blobs, alpha(), 0)}, Batch: new(kv.Batch)}
	for i := range 12 {
		big.Batch.Put(kv.Blobs, alpha().Key('k', []byte{byte(i)}), sized(1<<20))
	}
	mustCommit(t, e, big)
	marked := put(at(kv.System, alpha(), 0), "s=1")
	marked.Token = 99
	mustCommit(t, e, marked)
	lazy := put(anyOf(kv.Log, alpha()), "lazy=1")
	lazy.Lazy = true
	mustCommit(t, e, lazy)
	for range 3 {
		mustClose(t, e)
		e = open(t, opener.at(dir))
		wantScan(t, e, kv.Records, kv.Range{}, "a=3", "b=2", "empty=")
		wantScan(t, e, kv.Log, kv.Range{}, "lazy=1")
		wantStored(t, e, nil, big.Batch)
		wantSequence(t, e, ref(kv.Records, alpha()), 2)
		wantSequence(t, e, ref(kv.Blobs, alpha()), 1)
		wantSequence(t, e, ref(kv.Index, alpha()), 0)
		last, err := e.LastCommits(t.Context(), ref(kv.System, alpha()))
		if err != nil || last[0] != (kv.LastCommit{Sequence: 1, Token: 99}) {
			t.Errorf("last commit %+v, %v, want token 99 at 1", last, err)
		}
	}
}

func testReopenGoesOn(t *testing.T, opener Opener) {
	dir := t.TempDir()
	for i := range uint64(5) {
		e := open(t, opener.at(dir))
		wantError(t, "commit at an old sequence", e.Commit(t.Context(), put(at(kv.Records, alpha(), i+1), "a=0")), kv.ErrConflict)
		mustCommit(t, e, put(at(kv.Records, alpha(), i), "a=1"))
		mustClose(t, e)
	}
}

func testReopenDropped(t *testing.T, opener Opener) {
	dir := t.TempDir()
	e := open(t, opener.at(dir))
	d, ok := e.(kv.RangeDropper)
	if !ok {
		return
	}
	fill(t, e, "a=1", "b=2")
	mustDrop(t, d, kv.Records, kv.Range{Start: key(alpha(), "b")})
	mustClose(t, e)
	e = open(t, opener.at(dir))
	wantScan(t, e, kv.Records, kv.Range{}, "a=1")
	wantSequence(t, e, ref(kv.Records, alpha()), 1)
}

func testCheckpoint(t *testing.T, opener Opener) {
	e := open(t, opener.at(t.TempDir()))
	c, ok := e.(kv.Checkpointer)
	if !ok {
		return
	}
	fill(t, e, "a=1")
	mustCommit(t, e, put(anyOf(kv.Log, alpha()), "l=1"))
	dir := filepath.Join(t.TempDir(), "copy")
	if err := c.Checkpoint(t.Context(), dir); err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	if err := c.Checkpoint(t.Context(), dir); err == nil {
		t.Error("checkpoint into a directory that exists is not refused")
	}
	fill(t, e, "a=2", "b=2")
	// The copy opens beside the original and goes its own way.
	dup := open(t, opener.at(dir))
	wantScan(t, dup, kv.Records, kv.Range{}, "a=1")
	wantScan(t, dup, kv.Log, kv.Range{}, "l=1")
	mustCommit(t, dup, put(at(kv.Records, alpha(), 1), "c=3"))
	wantScan(t, dup, kv.Records, kv.Range{}, "a=1", "c=3")
	wantScan(t, e, kv.Records, kv.Range{}, "a=2", "b=2")
}
