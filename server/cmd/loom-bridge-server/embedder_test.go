package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/embed/nearby"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// An embedder that fails at the texts of records still makes the vectors of
// queries: what is left alone is what fails.
func TestQueriesOutliveFailingRecords(t *testing.T) {
	t.Parallel()
	var records, queries atomic.Int64
	embedder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Input) != 1 || !strings.HasPrefix(request.Input[0], "query: ") {
			records.Add(1)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		queries.Add(1)
		_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1,0,0]}]}`))
	}))
	defer embedder.Close()
	p := MustRun(t, t.TempDir(), "--embedder-url", embedder.URL+"/v1", "--embedder-model", "m", "--embedder-text-prefix", "text: ", "--embedder-query-prefix", "query: ")
	save(t, p, "Bitcoin closed at 45,000")
	const enough = 5 // failures in a row, after which an embedder is left alone
	for deadline := time.Now().Add(20 * time.Second); records.Load() < enough && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if records.Load() < enough {
		t.Fatalf("only %d requests for records", records.Load())
	}
	before := queries.Load()
	if hits(t, p, "bitcoin") != 1 || queries.Load() != before+1 {
		t.Errorf("the embedder was not asked for the query's vector: %d requests", queries.Load()-before)
	}
}

// What needs no common word is found by an embedder that listens on this machine, when the
// server may look for one; without it the answer says that only words were searched.
//
// F08, Y29
func TestEmbedderNearby(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/info" { // as Text Embeddings Inference
			_, _ = w.Write([]byte(`{"model_id":"BAAI/bge-small-en-v1.5","model_type":{"embedding":{"pooling":"cls"}}}`))
			return
		}
		var request struct{ Input []string }
		if r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&request) != nil {
			http.NotFound(w, r)
			return
		}
		var data []map[string]any
		for i, text := range request.Input {
			v := []float32{0, 1}
			if strings.Contains(text, "hamster") || strings.Contains(text, "animal") {
				v = []float32{1, 0}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer model.Close()
	host := model.Listener.Addr().String()
	const question = "which animal do I own?"

	p := MustRunWith(t, t.TempDir(), func(c *Config) { c.EmbedderHosts = host }) // not asked: it may not look
	save(t, p, "I have a hamster")
	got, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: question})
	must(t, err)
	if len(got.GetHits()) != 0 || !slices.Contains(got.GetReceipt().GetDegraded(), "no embedder, words only") {
		t.Errorf("without an embedder: %v", got)
	}
	must(t, p.Stop())

	p = MustRunWith(t, t.TempDir(), func(c *Config) { c.EmbedderHosts = "127.0.0.1:1," + host }, "--embedder", "auto")
	save(t, p, "I have a hamster")
	found := 0
	for deadline := time.Now().Add(30 * time.Second); found == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		found = hits(t, p, question)
	}
	if found != 1 || !strings.Contains(p.Log.String(), "bge-small") {
		t.Errorf("%d hits; the log says %s", found, p.Log)
	}
	must(t, p.Stop())

	var out strings.Builder
	Config{EmbedderHosts: host}.tellEmbedder(t.Context(), &out)
	said := out.String()
	if !strings.Contains(said, "embedder: TEI with BAAI/bge-small-en-v1.5 at http://"+host+"/v1 listens here") {
		t.Errorf("doctor said %s", said)
	}
	for _, bad := range []string{"10.0.0.1:80", "example.org:80", "127.0.0.1"} {
		if nearby.Check(bad) == nil {
			t.Errorf("%s is taken for an address of this machine", bad)
		}
	}
}
