package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embeddings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// meanings is an embedder that knows a few words, each by what it is about.
type meanings struct {
	space   string
	longest int // texts beyond are refused; 0 for none
	fails   atomic.Bool
	texts   atomic.Int64
	wait    chan struct{} // if set, requests wait until it is closed
}

var about = map[string]int{
	"dog": 0, "puppy": 0, "hound": 0, "barks": 0,
	"car": 1, "automobile": 1, "vehicle": 1, "engine": 1,
	"soup": 2, "stew": 2, "broth": 2, "kitchen": 2,
}

func (m *meanings) Space() string { return m.space }

func (m *meanings) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if m.wait != nil {
		select {
		case <-m.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if m.fails.Load() {
		return nil, &embed.StatusError{Code: http.StatusServiceUnavailable}
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if m.longest > 0 && len(text) > m.longest {
			return nil, &embed.StatusError{Code: http.StatusBadRequest}
		}
		v := []float32{0, 0, 0, 0.1}
		for _, word := range strings.Fields(strings.ToLower(text)) {
			if n, ok := about[word]; ok {
				v[n]++
			}
		}
		vectors[i] = v
	}
	m.texts.Add(int64(len(texts)))
	return vectors, nil
}

// MustVectorRig returns a store with an embedder.
func MustVectorRig(tb testing.TB, e embed.Embedder) *rig {
	tb.Helper()
	r := MustRig(tb, memkv.New(nil))
	r.opts.Embedder = e
	r.Reopen()
	return r
}

func (r *rig) MustWaiting(tb testing.TB, want int) {
	tb.Helper()
	got, err := r.WaitingForVectors(tb.Context(), agent)
	if err != nil || got != want {
		tb.Errorf("%d records wait for a vector (%v), want %d", got, err, want)
	}
}

// A word that stands in one record alone finds it first, however few records there are to
// tell which vectors stand out.
func TestWordAmongFew(t *testing.T) {
	for count := 2; count <= 24; count++ {
		synctest.Test(t, func(t *testing.T) {
			r := MustVectorRig(t, &meanings{space: "meanings/1"})
			for i := range count {
				kind := []string{"hound", "engine", "soup"}[i%3]
				r.MustSave(t, record.Record{ID: fmt.Sprint("r", i), Text: fmt.Sprintf("The %s remembers marker%dx of its work", kind, i)})
			}
			synctest.Wait()
			r.MustWaiting(t, 0)
			for i := range count {
				for _, ask := range []string{"marker%dx", "the work of marker%dx"} {
					result := r.MustQuery(t, question.Question{Text: fmt.Sprintf(ask, i), Limit: 1})
					mustEqual(t, fmt.Sprintf("hits of %d among %d", i, count), []string{fmt.Sprint("r", i)}, ids(result))
				}
			}
		})
	}
}

// A record without a vector gets one in the background, and is then found by
// what it means.
//
// F08
func TestBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := MustVectorRig(t, &meanings{space: "meanings/1"})
		for i := range 300 {
			r.MustSave(t, record.Record{Text: fmt.Sprintf("Nothing of interest in note %d", i)})
		}
		r.MustSave(t, record.Record{ID: "dog", Text: "The puppy barks"})
		synctest.Wait()
		r.MustWaiting(t, 0)
		result := r.MustQuery(t, question.Question{Text: "hound", Limit: 1})
		mustEqual(t, "hits", []string{"dog"}, ids(result))
		if len(result.Receipt.Degraded) > 0 {
			t.Errorf("degraded: %q", result.Receipt.Degraded)
		}
		got, err := r.Get(t.Context(), agent, "dog")
		if err != nil || got.EmbeddingSpace != "meanings/1" || !cmp.Equal(got.Embedding, []float32{2, 0, 0, 0.1}) {
			t.Errorf("record has the vector %v in %q, %v", got.Embedding, got.EmbeddingSpace, err)
		}
	})
}

// An embedder that hangs delays no save, and a query only for as long as it may.
//
// F08
func TestHangingEmbedder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &meanings{space: "meanings/1", wait: make(chan struct{})}
		r := MustVectorRig(t, e)
		began := time.Now()
		r.MustSave(t, record.Record{ID: "dog", Text: "The puppy barks"})
		if took := time.Since(began); took > 0 {
			t.Errorf("save took %v", took)
		}
		result := r.MustQuery(t, question.Question{Text: "puppy"})
		mustEqual(t, "hits", []string{"dog"}, ids(result))
		if took := time.Since(began); took != embeddings.DefaultTimeout {
			t.Errorf("query took %v, want %v", took, embeddings.DefaultTimeout)
		}
		if len(result.Receipt.Degraded) == 0 {
			t.Error("the receipt does not say that the embedder failed")
		}
		_, err := r.Query(t.Context(), agent, question.Question{Text: "cat", Mode: question.Vector})
		if !errors.Is(err, memory.ErrEmbedder) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("by vectors alone: got %v, want ErrEmbedder, as the caller has time left", err)
		}
		close(e.wait)
		synctest.Wait()
		mustEqual(t, "hits by meaning", []string{"dog"}, ids(r.MustQuery(t, question.Question{Text: "hound"})))
	})
}

// Queries for the same at once have its vector made once; where that fails, each tries itself.
//
// F08
func TestSameQueryAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &meanings{space: "meanings/1"}
		r := MustVectorRig(t, e)
		r.MustSave(t, record.Record{ID: "dog", Text: "The puppy barks"})
		synctest.Wait()
		e.wait = make(chan struct{})
		before := e.texts.Load()
		ask := func(ctx context.Context, n int) <-chan error {
			done := make(chan error, n)
			for range n {
				go func() {
					_, err := r.Query(ctx, agent, question.Question{Text: "hound", Mode: question.Vector})
					done <- err
				}()
			}
			synctest.Wait()
			return done
		}
		left, leave := context.WithCancel(t.Context())
		gone := ask(left, 1) // has it made, and leaves
		asked := ask(t.Context(), 5)
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("of who left: %v", err)
		}
		synctest.Wait()
		close(e.wait)
		for range cap(asked) {
			if err := <-asked; err != nil {
				t.Error(err)
			}
		}
		if n := e.texts.Load() - before; n != 1 {
			t.Errorf("the embedder made %d vectors of one query", n)
		}
	})
}

// What an embedder could not do stands in the store: it is done when the
// embedder is back, and after a restart.
func TestEmbedderComesBack(t *testing.T) {
	for _, c := range []struct{ restart, older bool }{{}, {restart: true}, {restart: true, older: true}} {
		t.Run(fmt.Sprintf("restart=%t,older=%t", c.restart, c.older), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &meanings{space: "meanings/1"}
				e.fails.Store(true)
				r := MustVectorRig(t, e)
				for _, id := range []string{"gone", "changed", "dog"} {
					r.MustSave(t, record.Record{ID: id, Text: "The puppy barks"})
				}
				synctest.Wait()
				r.MustWaiting(t, 3)
				if _, err := r.Query(t.Context(), agent, question.Question{Text: "hound", Mode: question.Vector}); !errors.Is(err, memory.ErrEmbedder) {
					t.Errorf("query by vectors alone gives %v, want ErrEmbedder", err)
				}
				if result := r.MustQuery(t, question.Question{Text: "puppy"}); len(result.Hits) != 3 || len(result.Receipt.Degraded) == 0 {
					t.Errorf("query by words has %d hits, degraded %q", len(result.Hits), result.Receipt.Degraded)
				}
				if _, err := r.Delete(t.Context(), agent, memory.Deletion{ID: "gone"}, ""); err != nil {
					t.Fatal(err)
				}
				update := memory.Update{ID: "changed", Fields: memory.TextField, Values: record.Record{Text: "The soup and the stew"}}
				if _, err := r.Update(t.Context(), agent, update, ""); err != nil {
					t.Fatal(err)
				}
				r.MustWaiting(t, 2)
				if c.restart {
					r.close()
					if c.older && kvtest.Undivide(t, r.engine, "embeddings") == 0 {
						t.Error("no scope stood in the list")
					}
					e.fails.Store(false)
					r.open()
				} else {
					e.fails.Store(false)
					time.Sleep(2 * time.Minute)
				}
				synctest.Wait()
				r.MustWaiting(t, 0)
				for list, err := range kv.List("embeddings").Scopes(t.Context(), r.engine) {
					t.Errorf("something is left in %s, %v", list, err)
				}
				mustEqual(t, "dogs", []string{"dog"}, ids(r.MustQuery(t, question.Question{Text: "hound", Mode: question.Vector, Limit: 1})))
				mustEqual(t, "soups", []string{"changed"}, ids(r.MustQuery(t, question.Question{Text: "broth", Mode: question.Vector, Limit: 1})))
			})
		})
	}
}

// A text that is too long for the model gets the vector of its beginning; one
// that is refused all the same stays without, and holds up nothing.
func TestRefusedTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &meanings{space: "meanings/1", longest: 600}
		r := MustVectorRig(t, e)
		r.MustSave(t, record.Record{ID: "long", Text: "The puppy barks " + strings.Repeat("and so on ", 2000)})
		r.MustSave(t, record.Record{ID: "car", Text: "The automobile and its engine"})
		synctest.Wait()
		r.MustWaiting(t, 0)
		mustEqual(t, "long", []string{"long"}, ids(r.MustQuery(t, question.Question{Text: "hound", Mode: question.Vector, Limit: 1})))
		mustEqual(t, "short", []string{"car"}, ids(r.MustQuery(t, question.Question{Text: "vehicle", Mode: question.Vector, Limit: 1})))
		e.longest = 10
		r.MustSave(t, record.Record{ID: "refused", Text: "A kitchen with a broth in it"})
		synctest.Wait()
		r.MustWaiting(t, 0)
		mustEqual(t, "by words", []string{"refused"}, ids(r.MustQuery(t, question.Question{Text: "kitchen", Mode: question.Lexical})))
	})
}

// Vectors of two models are never compared: a vector that does not fit its space
// changes nothing.
func TestMixedVectors(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.MustSave(t, record.Record{ID: "a", Text: "one", Embedding: []float32{1, 0}, EmbeddingSpace: "m"})
	_, err := r.Save(t.Context(), agent, record.Record{Text: "two", Embedding: []float32{1}, EmbeddingSpace: "m"}, "")
	if !errors.Is(err, vector.ErrDimension) {
		t.Errorf("saving gives %v, want ErrDimension", err)
	}
	_, err = r.Query(t.Context(), agent, question.Question{Text: "one", Embedding: []float32{1, 2, 3}, EmbeddingSpace: "m"})
	if !errors.Is(err, vector.ErrDimension) {
		t.Errorf("query gives %v, want ErrDimension", err)
	}
	r.MustSave(t, record.Record{ID: "b", Text: "two", Embedding: []float32{1}, EmbeddingSpace: "n"})
	result := r.MustQuery(t, question.Question{Mode: question.Vector, Embedding: []float32{1}, EmbeddingSpace: "n"})
	mustEqual(t, "hits", []string{"b"}, ids(result))
	spaces, err := r.VectorSpaces(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "spaces", []vector.Space{{Name: "m", Dimension: 2, Count: 1}, {Name: "n", Dimension: 1, Count: 1}}, spaces)
}

// A change of models goes on beside the daily work, may stop and go on, and
// leaves nothing of the old space.
//
// F08
func TestReembed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, renewed := &meanings{space: "meanings/1"}, &meanings{space: "meanings/2"}
		r := MustVectorRig(t, old)
		for i := range 400 {
			r.MustSave(t, record.Record{Text: fmt.Sprintf("Soup number %d", i)})
		}
		r.MustSave(t, record.Record{ID: "zzz-dog", Text: "The puppy barks"})
		synctest.Wait()
		r.opts.Embedder = renewed
		r.Reopen()
		byMeaning := func(when string) {
			t.Helper()
			mustEqual(t, when, []string{"zzz-dog"}, ids(r.MustQuery(t, question.Question{Text: "hound", Limit: 1})))
		}
		enough := errors.New("enough")
		err := r.Reembed(t.Context(), agent, func(_ string, done, _ int64) error {
			if done >= 256 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Fatalf("stopped run gives %v", err)
		}
		before := renewed.texts.Load()
		var last, total int64
		err = r.Reembed(t.Context(), agent, func(space string, done, of int64) error {
			if space != "meanings/2" || done < last || done > of {
				t.Errorf("progress in %q from %d to %d of %d", space, last, done, of)
			}
			last, total = done, of
			return nil
		})
		if err != nil || last != total || total != 401 {
			t.Errorf("%v, %d of %d are done", err, last, total)
		}
		if again := renewed.texts.Load() - before; again > 401-256+20 {
			t.Errorf("the second run embedded %d texts", again)
		}
		spaces, err := r.VectorSpaces(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		mustEqual(t, "spaces", []vector.Space{{Name: "meanings/2", Dimension: 4, Count: 401}}, spaces)
		byMeaning("after")
	})
}

func TestInvalidQueryVectors(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	nan := float32(math.NaN())
	queries := map[string]question.Question{
		"embedding_space": {Embedding: []float32{1}},
		"embedding":       {EmbeddingSpace: "m"},
		"too long":        {EmbeddingSpace: "m", Embedding: make([]float32, record.MaxEmbedding+1)},
		"not finite":      {EmbeddingSpace: "m", Embedding: []float32{1, nan}},
		"name":            {EmbeddingSpace: strings.Repeat("m", 200), Embedding: []float32{1}},
	}
	for name, q := range queries {
		q.Text = "anything"
		if _, err := r.Query(t.Context(), agent, q); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%s: error is %v, want ErrInvalid", name, err)
		}
	}
}

// A space that nobody has vectors in, and a vector without a direction, find
// nothing, and the receipt says why.
func TestVectorsThatFindNothing(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.MustSave(t, record.Record{Text: "The puppy barks", Embedding: []float32{1, 0}, EmbeddingSpace: "m"})
	for name, tt := range map[string]struct {
		space    string
		vector   []float32
		degraded int
	}{
		"fits":          {"m", []float32{1, 0}, 0},
		"unknown space": {"n", []float32{1, 0}, 1},
		"zeros":         {"m", []float32{0, 0}, 1},
	} {
		result := r.MustQuery(t, question.Question{Text: "hound", Mode: question.Vector, Embedding: tt.vector, EmbeddingSpace: tt.space})
		if found, want := len(result.Hits) > 0, tt.degraded == 0; found != want || len(result.Receipt.Degraded) != tt.degraded {
			t.Errorf("%s: %d hits, degraded %q", name, len(result.Hits), result.Receipt.Degraded)
		}
	}
}

func TestReembedWithoutEmbedder(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	if err := r.Reembed(t.Context(), agent, nil); !errors.Is(err, memory.ErrNoEmbedder) {
		t.Errorf("error is %v, want ErrNoEmbedder", err)
	}
	if _, err := r.Query(t.Context(), agent, question.Question{Text: "x", Mode: question.Vector}); !errors.Is(err, memory.ErrNoEmbedder) {
		t.Errorf("query by vectors gives %v, want ErrNoEmbedder", err)
	}
}

// Over a real connection, with a server that is slow and fails now and then.
//
// F08
func TestEmbeddingServer(t *testing.T) {
	server := &embedtest.Server{
		Embedder: &meanings{space: "m"}, Delay: 2 * time.Millisecond,
		Fail: func(n int64) int {
			if n%4 == 1 {
				return http.StatusTooManyRequests
			}
			return 0
		},
	}
	web := httptest.NewServer(server)
	defer web.Close()
	client, err := embed.NewClient(embed.Options{BaseURL: web.URL + "/v1", Model: "meanings", Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	r := MustVectorRig(t, client)
	for i := range 60 {
		r.MustSave(t, record.Record{Text: fmt.Sprintf("The stew of day %d", i)})
	}
	r.MustSave(t, record.Record{ID: "dog", Text: "The puppy barks"})
	deadline := time.After(3 * time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		waiting, err := r.WaitingForVectors(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		if waiting == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d records still wait after %d requests", waiting, server.Requests())
		}
	}
	mustEqual(t, "hits", []string{"dog"}, ids(r.MustQuery(t, question.Question{Text: "hound", Limit: 1})))
}
