package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
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
	for deadline := time.Now().Add(waitTime); records.Load() < enough && time.Now().Before(deadline); {
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

// A prompt has the vector of a message made once, although several sources ask with it at once, and
// the next prompt has none made while nothing changed.
//
// F08, F20
func TestPromptEmbedsOnce(t *testing.T) {
	t.Parallel()
	const said = "Which grade of oil does the pump need?"
	var queries atomic.Int64
	embedder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&request)
		var data []map[string]any
		for i, text := range request.Input {
			if text == "query: "+said {
				queries.Add(1)
				time.Sleep(50 * time.Millisecond) // a slow model: who asks meanwhile waits for it
			}
			data = append(data, map[string]any{"index": i, "embedding": []float32{1, 0, 0}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer embedder.Close()
	p := MustRun(t, t.TempDir(), "--embedder-url", embedder.URL+"/v1", "--embedder-model", "m", "--embedder-query-prefix", "query: ")
	for _, kind := range []string{"", "knowledge", "playbook"} {
		_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Kind: kind, Text: "The pump needs oil of grade 7 " + kind})
		must(t, err)
	}
	client := contexts.New(p.conn)
	_, err := client.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: said},
	}})
	must(t, err)
	for range 2 {
		_, err := client.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", MaxTokens: 8192})
		must(t, err)
		if n := queries.Load(); n != 1 {
			t.Fatalf("%d vectors were made of one message", n)
		}
	}
}

// textEmbeddings is a server on this machine that is taken for Text Embeddings Inference: for
// it, hamsters and animals are the same.
func textEmbeddings(t *testing.T) (host string, stop func()) {
	t.Helper()
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
	t.Cleanup(model.Close)
	return model.Listener.Addr().String(), model.Close
}

// What needs no common word is found by an embedder that listens on this machine, when the
// server may look for one; without it the answer says that only words were searched.
//
// F08, Y29
func TestEmbedderNearby(t *testing.T) {
	t.Parallel()
	host, _ := textEmbeddings(t)
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
	for deadline := time.Now().Add(waitTime); found == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		found = hits(t, p, question)
	}
	if found != 1 || !strings.Contains(p.Log.String(), "bge-small") {
		t.Errorf("%d hits; the log says %s", found, p.Log)
	}
	must(t, p.Stop())

	var out strings.Builder
	Config{EmbedderUse: embedderAuto, EmbedderHosts: host}.tellEmbedder(t.Context(), &out)
	said := out.String()
	if !strings.Contains(said, "embedder: BAAI/bge-small-en-v1.5 at http://"+host) {
		t.Errorf("doctor said %s", said)
	}
	for _, bad := range []string{"10.0.0.1:80", "example.org:80", "127.0.0.1"} {
		if nearby.Check(bad) == nil {
			t.Errorf("%s is taken for an address of this machine", bad)
		}
	}
}

// What needs no common word is found by the server's own model, offline, within a minute of
// the first start; without its file words have to do, and the log and doctor say why.
//
// F08, Y29
func TestEmbedderBuiltin(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	missing := func(c *Config) { c.EmbedderHosts, c.ModelFile = nobody, filepath.Join(t.TempDir(), "none") }
	p := MustRunWith(t, t.TempDir(), missing, "--embedder", "auto")
	p.told(t, "`make model` fetches it; memory is searched by words")
	must(t, p.Stop())
	var refused *ConfigError
	if _, err := tryRunWith(t, noEnvironment, missing, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--embedder", "builtin"); !errors.As(err, &refused) || refused.Field != "embedder" {
		t.Errorf("builtin without the model: %v", err)
	}

	path := builtin.Find(filepath.Join("..", "..", "..", "bin", "loom-bridge-server"))
	if path == "" {
		t.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	dir := t.TempDir()
	own := func(c *Config) { c.EmbedderHosts, c.ModelFile = nobody, path }
	for _, use := range []string{"auto", "builtin", "auto"} { // the second and third start find what is stored
		p := MustRunWith(t, dir, own, "--embedder", use)
		if use == "auto" {
			save(t, p, "I have a hamster")
			save(t, p, "The invoice was paid in March")
		}
		eventually(t, waitTime, func() error {
			got, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "Which animal do I own?"})
			if err != nil || len(got.GetHits()) == 0 || got.GetHits()[0].GetRecord().GetText() != "I have a hamster" || len(got.GetReceipt().GetDegraded()) > 0 {
				return fmt.Errorf("%v %w", got, err)
			}
			return nil
		})
		for question, found := range map[string]int{"Which animal do I own?": 1, "How tall is Everest?": 0, "asdf qwer": 0} {
			got, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: question, Limit: 1, MinScore: 0.22})
			if must(t, err); len(got.GetHits()) != found {
				t.Errorf("%q finds %v", question, got)
			}
		}
		p.told(t, "use-multilingual-3, in the server itself")
		must(t, p.Stop())
	}
	p = MustRunWith(t, dir, own, "--embedder", "off")
	if got := hits(t, p, "which animal do I own?"); got != 0 {
		t.Errorf("with words alone: %d hits", got)
	}
	save(t, p, "My sister plays the violin")
	must(t, p.Stop())
	p = MustRunWith(t, dir, own, "--embedder", "auto")
	eventually(t, waitTime, func() error {
		if hits(t, p, "Who makes music?") == 0 {
			return errors.New("what was saved without an embedder has no vector")
		}
		return nil
	})
}

// Which embedder the server chose stays that of the store, whatever listens at a later start:
// vectors of two can't be compared. One that is named ends the choice.
//
// F08
func TestChosenEmbedderStays(t *testing.T) {
	t.Parallel()
	path := builtin.Find(filepath.Join("..", "..", "..", "bin", "loom-bridge-server"))
	if path == "" {
		t.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	host, stop := textEmbeddings(t)
	start := func(dir, hosts, want string, arguments ...string) {
		t.Helper()
		with := func(c *Config) { c.EmbedderHosts, c.ModelFile = hosts, path }
		p := MustRunWith(t, dir, with, append([]string{"--embedder", "auto"}, arguments...)...)
		p.told(t, want)
		must(t, p.Stop())
	}
	const none, own, other = "127.0.0.1:1", "use-multilingual-3, in the server itself", "bge-small-en-v1.5 at http"
	first, second := t.TempDir(), t.TempDir()
	start(first, none, own)
	start(first, host, own)
	start(first, host, "m at http", "--embedder-url", "http://"+host+"/v1", "--embedder-model", "m")
	start(first, host, other)
	start(second, host, other)
	stop()
	start(second, none, other)
	start(second, none, own, "--embedder", "builtin")
	start(second, none, own)
}

// Whoever tells anew what has changed, in words of their own, is answered with the newest, which
// names what it replaces; who asks for the past is not.
//
// F08
func TestNewestTellingByMeaning(t *testing.T) {
	t.Parallel()
	path := builtin.Find(filepath.Join("..", "..", "..", "bin", "loom-bridge-server"))
	if path == "" {
		t.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	p := MustRunWith(t, t.TempDir(), func(c *Config) { c.ModelFile = path }, "--embedder", "builtin")
	for _, text := range []string{
		"We hiked to the old mill on Sunday", "My cousin plays the trombone", "My parking space is number 14 in the garage",
		"It rained all week", "The soup needs more pepper", "The neighbours have a parrot", "They moved me, I park at number 52 now",
		"The printer is out of paper", "I repaired the bicycle", "The lecture on bees was full", "My shoes are still wet",
		"Forget 52, my parking space is number 7 from here on", "There is cake in the kitchen", "The cinema was closed",
	} {
		save(t, p, text)
	}
	ask := func(query string) []*loombridgev1.MemoryHit {
		got, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: query})
		must(t, err)
		return got.GetHits()
	}
	eventually(t, waitTime, func() error {
		hits := ask("Where do I park, what is my parking space?")
		if len(hits) == 0 || !strings.Contains(hits[0].GetRecord().GetText(), "number 7") || len(hits[0].GetOlderIds()) == 0 {
			return fmt.Errorf("%v", hits)
		}
		return nil
	})
	for _, hit := range ask("What was my first parking space?") {
		if len(hit.GetOlderIds()) > 0 {
			t.Errorf("asked for the past, %q replaces another", hit.GetRecord().GetText())
		}
	}
}
