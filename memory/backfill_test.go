package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// tripping is an embedder that breaks down at some texts.
type tripping struct {
	meanings
	word  string // that it trips over
	error error
	asked atomic.Int64
	sound atomic.Bool // it does so no more
}

func (p *tripping) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	p.asked.Add(1)
	for _, text := range texts {
		if strings.Contains(text, p.word) && !p.sound.Load() {
			return nil, p.error
		}
	}
	return p.meanings.Embed(ctx, texts)
}

// MustSaveFor saves to the memory of another agent.
func (r *rig) MustSaveFor(tb testing.TB, owner string, record record.Record) {
	tb.Helper()
	if _, err := r.Save(tb.Context(), kv.AgentScope("default", owner), record, ""); err != nil {
		tb.Fatal(err)
	}
}

// A text at which the embedder breaks down, or answers nonsense, costs that one
// record its vector and holds up no other, of its own scope or of another.
func TestPoisonedTexts(t *testing.T) {
	for name, failure := range map[string]error{
		"breaks down":      &embed.StatusError{Code: http.StatusInternalServerError},
		"answers nonsense": fmt.Errorf("%w: no vector", embed.ErrAnswer),
		"refuses":          &embed.StatusError{Code: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := MustVectorRig(t, &tripping{meanings: meanings{space: "meanings/1"}, word: "poison", error: failure})
				r.MustSave(t, record.Record{ID: "bad", Text: "A stew with poison"})
				r.MustSave(t, record.Record{ID: "car", Text: "The automobile and its engine"})
				r.MustSaveFor(t, "another", record.Record{ID: "dog", Text: "The puppy barks"})
				time.Sleep(time.Minute)
				r.MustWaiting(t, 0)
				mustEqual(t, "by meaning", []string{"car"}, ids(r.MustQuery(t, question.Question{Text: "vehicle", Mode: question.Vector})))
				found, err := r.Query(t.Context(), kv.AgentScope("default", "another"), question.Question{Text: "hound", Mode: question.Vector})
				mustEqual(t, "in the other scope", []string{"dog"}, ids(found))
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// carried carries requests to a server without a network, which breaks down at
// a word.
type carried struct {
	server http.Handler
	word   string
}

func (c carried) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	if strings.Contains(string(body), c.word) {
		answer.WriteHeader(http.StatusInternalServerError)
		return answer.Result(), nil
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.server.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// The same through a client, whose breaker must not stay open for a text.
func TestPoisonedTextsOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &embedtest.Server{Embedder: &meanings{space: "m"}}
		client, err := embed.NewClient(embed.Options{BaseURL: "http://embedder/v1", Model: "m", Batch: 2, Transport: carried{server, "poison"}})
		if err != nil {
			t.Fatal(err)
		}
		r := MustVectorRig(t, client)
		for i := range 12 {
			text := fmt.Sprintf("Note %d of a poison", i)
			if i%3 == 0 {
				text = fmt.Sprintf("Note %d of a puppy", i)
			}
			r.MustSave(t, record.Record{Text: text})
		}
		time.Sleep(time.Hour)
		r.MustWaiting(t, 0)
		if found := r.MustQuery(t, question.Question{Text: "hound", Mode: question.Vector, Filter: `kind = "fact"`, Limit: 20}); len(found.Hits) != 4 {
			t.Errorf("%d hits, want 4", len(found.Hits))
		}
	})
}

// Vectors of another dimension in the embedder's own space, whoever put them
// there, leave the scope with its words, and cost no request each save.
func TestEmbedderOfAnotherDimension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tripping{meanings: meanings{space: "meanings/1"}, word: "no such word"}
		r := MustVectorRig(t, e)
		r.MustSave(t, record.Record{ID: "foreign", Text: "A note", Embedding: []float32{1, 2}, EmbeddingSpace: "meanings/1"})
		r.MustSave(t, record.Record{ID: "dog", Text: "The puppy barks"})
		synctest.Wait()
		asked := e.asked.Load()
		for range 5 {
			r.MustSave(t, record.Record{Text: "Another note"})
			synctest.Wait()
		}
		if more := e.asked.Load() - asked; more > 0 {
			t.Errorf("asked %d times in vain", more)
		}
		result := r.MustQuery(t, question.Question{Text: "puppy"})
		mustEqual(t, "by words", []string{"dog"}, ids(result))
		if len(result.Receipt.Degraded) != 1 {
			t.Errorf("degraded: %q", result.Receipt.Degraded)
		}
		// Whoever asks for vectors alone, or for new ones, gave none that could be wrong.
		_, err := r.Query(t.Context(), agent, question.Question{Text: "puppy", Mode: question.Vector})
		for what, err := range map[string]error{"query": err, "reembed": r.Reembed(t.Context(), agent, nil)} {
			if !errors.Is(err, memory.ErrEmbedder) || errors.Is(err, vector.ErrDimension) {
				t.Errorf("%s: got %v, want ErrEmbedder alone", what, err)
			}
		}
	})
}
