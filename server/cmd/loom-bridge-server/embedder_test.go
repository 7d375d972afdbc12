package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An embedder that fails at the texts of records still makes the vectors of
// queries: what is left alone is what fails.
func TestQueriesOutliveFailingRecords(t *testing.T) {
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
