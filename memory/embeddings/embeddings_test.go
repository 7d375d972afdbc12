package embeddings_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embeddings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

var agent = kv.AgentScope("default", "researcher")

// letters is an embedder that counts the letters a and b of a text.
type letters struct {
	space string
	fails atomic.Pointer[embed.StatusError] // what it answers instead
	wait  chan struct{}                     // if set, requests wait until it is closed
	asked atomic.Int64
}

func (l *letters) Space() string { return l.space }

func (l *letters) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	l.asked.Add(1)
	if l.wait != nil {
		select {
		case <-l.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if failure := l.fails.Load(); failure != nil {
		return nil, failure
	}
	made := make([][]float32, len(texts))
	for i, text := range texts {
		made[i] = []float32{float32(strings.Count(text, "a")), float32(strings.Count(text, "b")), 0.1}
	}
	return made, nil
}

// rig is Embeddings with what they stand on.
type rig struct {
	*embeddings.Embeddings
	engine kv.Engine
	writer *kv.Writer
	close  func()
}

func open(engine kv.Engine, e embed.Embedder) *rig {
	r := &rig{engine: engine, writer: kv.NewWriter(engine, nil)}
	leases := lease.NewHolder(engine, r.writer, nil)
	r.Embeddings = embeddings.New(engine, r.writer, leases, embeddings.Options{Embedder: e})
	r.close = func() {
		r.Embeddings.Close()
		_ = leases.Close()
		_ = r.writer.Close()
	}
	return r
}

func mustOpen(tb testing.TB, e embed.Embedder) *rig {
	tb.Helper()
	r := open(memkv.New(nil), e)
	tb.Cleanup(func() { r.close() })
	return r
}

// mustSave stores a record as document n of a scope, without a vector.
func (r *rig) mustSave(tb testing.TB, scope kv.Scope, n uint32, text string) {
	tb.Helper()
	one := record.Record{ID: fmt.Sprint("r", n), Text: text, Document: record.Document{Ordinal: n}}
	err := r.writer.Do(tb.Context(), kv.Request{Refs: vector.Refs(scope), Blind: r.Blind(scope), Stage: func(ctx context.Context, tx *kv.Tx) error {
		tx.Put(kv.Records, record.Key(scope, one.ID), record.Encode(one))
		return r.Stage(ctx, tx, scope, one)
	}})
	if err != nil {
		tb.Fatal(err)
	}
	r.Saved(scope)
}

func (r *rig) mustWait(tb testing.TB, want int) {
	tb.Helper()
	if n, err := r.Pending(tb.Context(), 1000); n != want || err != nil {
		tb.Errorf("%d records wait for a vector, want %d: %v", n, want, err)
	}
}

// hits are the documents of the scope agent that are nearest to a text.
func (r *rig) hits(tb testing.TB, text string) (ordinals []uint32) {
	tb.Helper()
	q, err := r.Query(tb.Context(), question.Question{Text: text, Mode: question.Vector})
	if err != nil {
		tb.Fatal(err)
	}
	found, _, err := r.Hits(tb.Context(), r.engine, agent, q, nil, 10)
	if err != nil {
		tb.Fatal(err)
	}
	for _, hit := range found {
		ordinals = append(ordinals, hit.Ordinal)
	}
	return ordinals
}

// What waits for a vector gets one, which then is the record's, is searched and counted; a
// record that is dropped leaves nothing behind.
func TestVectorsOfRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustOpen(t, &letters{space: "letters/1"})
		r.mustSave(t, agent, 1, "aaa")
		r.mustSave(t, agent, 2, "bbb")
		synctest.Wait()
		r.mustWait(t, 0)
		if found := r.hits(t, "b"); len(found) != 2 || found[0] != 2 {
			t.Errorf("nearest to b: %d", found)
		}
		one := &record.Record{ID: "r1", Document: record.Document{Ordinal: 1}}
		if err := r.Complete(t.Context(), r.engine, agent, one); err != nil || one.EmbeddingSpace != "letters/1" || len(one.Embedding) != 3 {
			t.Errorf("record has %v in %q: %v", one.Embedding, one.EmbeddingSpace, err)
		}
		err := r.writer.Do(t.Context(), kv.Request{Refs: vector.Refs(agent), Stage: func(ctx context.Context, tx *kv.Tx) error { return r.Drop(ctx, tx, agent, *one) }})
		if found := r.hits(t, "b"); err != nil || len(found) != 1 {
			t.Errorf("after one is gone: %d, %v", found, err)
		}
		if spaces, pending, err := r.Stats(t.Context(), r.engine, agent); err != nil || pending != 0 || len(spaces) != 1 || spaces[0].Count != 1 {
			t.Errorf("%+v, %d wait: %v", spaces, pending, err)
		}
	})
}

// A mark that names another document than the record is one that Check reports.
func TestCheckReportsStrayMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &letters{space: "letters/1"}
		e.fails.Store(&embed.StatusError{Code: http.StatusServiceUnavailable})
		r := mustOpen(t, e)
		r.mustSave(t, agent, 7, "a")
		for ordinal, want := range map[uint32]int{7: 0, 8: 1} {
			var reports int
			err := r.Check(t.Context(), r.engine, agent, map[string]uint32{"r7": ordinal}, func(string, ...any) { reports++ })
			if err != nil || reports != want {
				t.Errorf("document %d: %d reports, want %d: %v", ordinal, reports, want, err)
			}
		}
	})
}

// Without an embedder nothing waits, and what needs vectors says that there are none.
func TestNoEmbedder(t *testing.T) {
	r := mustOpen(t, nil)
	r.mustSave(t, agent, 1, "a")
	r.mustWait(t, 0)
	if err := r.Reembed(t.Context(), agent, nil); !errors.Is(err, embeddings.ErrNone) {
		t.Errorf("reembed: %v", err)
	}
	if _, err := r.Query(t.Context(), question.Question{Text: "a", Mode: question.Vector}); !errors.Is(err, embeddings.ErrNone) {
		t.Errorf("query: %v", err)
	}
	if q, err := r.Query(t.Context(), question.Question{Text: "a"}); err != nil || q.Space != "" || len(q.Degraded) != 1 {
		t.Errorf("query by both: %+v, %v", q, err)
	}
}

// Reembed moves all records to the space of another embedder.
func TestReembedMovesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustOpen(t, &letters{space: "letters/1"})
		for n := range uint32(200) {
			r.mustSave(t, agent, n+1, strings.Repeat("a", int(n)))
		}
		synctest.Wait()
		r.close()
		r = open(r.engine, &letters{space: "letters/2"})
		defer func() { r.close() }()
		var last int64
		err := r.Reembed(t.Context(), agent, func(_ string, done, _ int64) error { last = done; return nil })
		if spaces, _, failed := r.Stats(t.Context(), r.engine, agent); err != nil || failed != nil || last != 200 || len(spaces) != 1 || spaces[0].Name != "letters/2" {
			t.Errorf("%d done, spaces %+v: %v, %v", last, spaces, err, failed)
		}
	})
}

// An entry of the store that is no mark is damage, and no panic.
func TestDamagedMarks(t *testing.T) {
	engine := memkv.New(nil)
	r := open(engine, nil)
	defer r.close()
	for name, key := range map[string][]byte{
		"mark":  append(agent.Key(embeddings.Tag), binary.BigEndian.AppendUint16(nil, 1)...),
		"scope": embeddings.List.Part(agent).Key(embeddings.TagScope),
	} {
		keyspace := map[string]kv.Keyspace{"mark": kv.Records, "scope": kv.System}[name]
		err := r.writer.Do(t.Context(), kv.Request{Refs: append(vector.Refs(agent), embeddings.List.Ref(agent)), Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(keyspace, key, []byte("r1"))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Pending(t.Context(), 10); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("pending: %v", err)
	}
	if err := r.Check(t.Context(), engine, agent, nil, func(string, ...any) {}); !errors.Is(err, record.ErrDamaged) {
		t.Errorf("check: %v", err)
	}
}

// An embedder that refuses everything is set up wrongly: its records go on
// waiting, so that they get their vectors once that is mended.
func TestEmbedderSetUpWrongly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &letters{space: "letters/1"}
		e.fails.Store(&embed.StatusError{Code: http.StatusBadRequest})
		r := mustOpen(t, e)
		r.mustSave(t, agent, 1, "a")
		time.Sleep(time.Hour)
		r.mustWait(t, 1)
		if asked := e.asked.Load(); asked > 500 {
			t.Errorf("asked %d times in an hour", asked)
		}
		e.fails.Store(nil)
		time.Sleep(2 * time.Minute)
		r.mustWait(t, 0)
	})
}

// More scopes than the list of work has room for all get their vectors.
func TestBackfillOfManyScopes(t *testing.T) {
	const scopes = 4096 + 200
	synctest.Test(t, func(t *testing.T) {
		e := &letters{space: "letters/1", wait: make(chan struct{})}
		r := mustOpen(t, e)
		for i := range scopes {
			r.mustSave(t, kv.AgentScope("default", fmt.Sprint("owner ", i)), 1, "a")
		}
		close(e.wait)
		synctest.Wait()
		r.mustWait(t, 0)
	})
}

// A store that fails for a while delays the vectors of what was saved, and of what an earlier
// process left, and loses none of them.
func TestVectorsAfterAStoreThatFailed(t *testing.T) {
	for name, failing := range map[string]kvtest.FailurePlan{
		"a read":       {Read: 1},
		"a later read": {Read: 3},
		"all reads":    {Read: 1, Repeat: true},
		"a commit":     {Commit: 1},
		"all commits":  {Commit: 1, Repeat: true},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restarted ", restarted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := &letters{space: "letters/1"}
					e.fails.Store(&embed.StatusError{Code: http.StatusServiceUnavailable})
					engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
					r := open(engine, e)
					defer func() { r.close() }()
					r.mustSave(t, agent, 1, "a")
					synctest.Wait()
					e.fails.Store(nil)
					engine.Replan(failing)
					if restarted {
						r.close()
						r = open(engine, e)
					}
					time.Sleep(10 * time.Minute)
					engine.Replan(kvtest.FailurePlan{})
					time.Sleep(10 * time.Minute)
					r.mustWait(t, 0)
				})
			})
		}
	}
}

// Records of a time without an embedder get their vectors once there is one, whatever
// others of their scope have; nothing is asked for twice.
func TestRecordsOfATimeWithoutAnEmbedder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, e := memkv.New(nil), &letters{space: "letters/1"}
		other := kv.AgentScope("default", "writer")
		vectors := func(want int, space string) {
			t.Helper()
			var n int
			r := open(engine, nil)
			defer r.close()
			for _, scope := range []kv.Scope{agent, other} {
				spaces, pending, err := r.Stats(t.Context(), engine, scope)
				if err != nil || pending != 0 {
					t.Errorf("%d wait: %v", pending, err)
				}
				for _, s := range spaces {
					if s.Name == space {
						n += s.Count
					}
				}
			}
			if n != want {
				t.Errorf("%d vectors in %s, want %d", n, space, want)
			}
		}
		r := open(engine, nil)
		for n := range uint32(300) {
			r.mustSave(t, agent, n+1, strings.Repeat("a", int(n%9)+1))
		}
		r.mustSave(t, other, 1, "bbb")
		r.close()

		r = open(engine, e)
		synctest.Wait()
		if found := r.hits(t, "a"); len(found) != 10 {
			t.Errorf("nearest to a: %d", found)
		}
		r.close()
		vectors(301, "letters/1") // and for a moment there was a server without

		r = open(engine, nil)
		r.mustSave(t, agent, 301, "ab")
		r.close()
		r, asked := open(engine, e), e.asked.Load()
		synctest.Wait()
		r.close()
		vectors(302, "letters/1")
		if n := e.asked.Load() - asked; n != 1 {
			t.Errorf("one record took %d requests", n)
		}

		// Another embedder makes none for what has one; that costs, so a person says so.
		another := &letters{space: "letters/2"}
		r = open(engine, another)
		synctest.Wait()
		r.close()
		if n := another.asked.Load(); n != 0 {
			t.Errorf("another embedder was asked %d times", n)
		}
	})
}
