package memory_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// lateSaver saves a record right after the engine was asked for the head of a
// space of vectors outside of any commit, as RemoveReplaced does last: what any
// client may do at that moment.
type lateSaver struct {
	kv.Engine
	save func()

	mu    sync.Mutex
	armed bool // guarded by mu
}

func (e *lateSaver) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	values, err := e.Engine.Get(ctx, ks, keys...)
	e.mu.Lock()
	now := e.armed && ks == kv.Index && len(keys) == 1 && len(values) == 1 && isEmptied(values[0])
	if now {
		e.armed = false
	}
	e.mu.Unlock()
	if now {
		e.save()
	}
	return values, err
}

// isEmptied reports whether a value is the head of a space of vectors that has none
// any more: fields 2 stamp, 3 last slot, 5 vectors (memory/FORMAT.md).
func isEmptied(head []byte) bool {
	last, vectors := uint64(0), uint64(0)
	for f, err := range wire.Fields(head) {
		if err != nil {
			return false
		}
		switch f.Number {
		case 3:
			last = f.Value
		case 5:
			vectors = f.Value
		}
	}
	return last > 0 && vectors == 0
}

// constant gives every text the same vector.
type constant struct{}

func (constant) Space() string { return "new/model" }
func (constant) Embed(_ context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i := range all {
		all[i] = []float32{1, 0, 0}
	}
	return all, nil
}

// A vector of an acknowledged save must not go with the space that Reembed
// empties at the same moment.
func TestReembedKeepsAVectorSavedMeanwhile(t *testing.T) {
	ctx := t.Context()
	scope := kv.AgentScope("default", "a")
	engine := &lateSaver{Engine: memkv.New(nil)}
	writer := kv.NewWriter(engine, nil)
	s := memory.New(engine, writer, &memory.Options{Embedder: constant{}, SweepEvery: -1})
	defer writer.Close()
	defer s.Close()
	if _, err := s.Save(ctx, scope, record.Record{Text: "one", Embedding: []float32{1, 2}, EmbeddingSpace: "old"}, ""); err != nil {
		t.Fatal(err)
	}
	var saved record.Record
	engine.save = func() {
		var err error
		if saved, err = s.Save(ctx, scope, record.Record{Text: "two", Embedding: []float32{3, 4}, EmbeddingSpace: "old"}, ""); err != nil {
			t.Error(err)
		}
	}
	// The last report before dropOthers: from then on the first lone Get of the
	// index keyspace is that of the emptied space's head.
	err := s.Reembed(ctx, scope, func(_ string, done, total int64) error {
		if done == total {
			engine.mu.Lock()
			engine.armed = saved.ID == ""
			engine.mu.Unlock()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if saved.ID == "" {
		t.Fatal("nothing was saved meanwhile")
	}
	found, err := s.Get(ctx, scope, saved.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Embedding) != 2 || found.EmbeddingSpace != "old" {
		t.Errorf("the vector of an acknowledged save is gone: space %q, %d numbers", found.EmbeddingSpace, len(found.Embedding))
	}
}

// Whatever is saved while Reembed runs again and again, every record has a vector
// in the end.
func TestReembedBesideSaves(t *testing.T) {
	scope := kv.AgentScope("default", "a")
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	s := memory.New(engine, writer, &memory.Options{Embedder: constant{}, SweepEvery: -1})
	defer writer.Close()
	defer s.Close()
	const savers, each = 4, 60
	var saving sync.WaitGroup
	ids := make([][]string, savers)
	for n := range savers {
		saving.Go(func() {
			for range each {
				r, err := s.Save(t.Context(), scope, record.Record{Text: "a text", Embedding: []float32{1, 2}, EmbeddingSpace: "old"}, "")
				if err != nil {
					t.Error(err)
					return
				}
				ids[n] = append(ids[n], r.ID)
			}
		})
	}
	saved := make(chan struct{})
	go func() {
		saving.Wait()
		close(saved)
	}()
	for more := true; more; {
		select {
		case <-saved:
			more = false
		default:
		}
		if err := s.Reembed(t.Context(), scope, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range slices.Concat(ids...) {
		if r, err := s.Get(t.Context(), scope, id); err != nil || len(r.Embedding) == 0 {
			t.Fatalf("record %s has no vector: %v", id, err)
		}
	}
}
