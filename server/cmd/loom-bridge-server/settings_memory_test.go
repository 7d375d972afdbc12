package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// fakeModel is an OpenAI-compatible server of vectors that tells what it was asked.
type fakeModel struct {
	*httptest.Server
	tb testing.TB

	mu      sync.Mutex
	asked   []question
	gone    int           // callers that gave up
	holding chan struct{} // closed when answers may go out; nil always
}

// question is what one request asked.
type question struct {
	Model      string
	Input      []string
	Dimensions int
	key        string
}

// MustModel starts a model.
func MustModel(tb testing.TB) *fakeModel {
	tb.Helper()
	m := &fakeModel{tb: tb}
	m.Server = httptest.NewServer(m)
	tb.Cleanup(func() {
		m.release()
		m.Close()
	})
	return m
}

// ServeHTTP answers every text with the same vector.
func (m *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/tags" { // as Ollama
		_, _ = w.Write([]byte(`{"models":[{"name":"llama3","details":{"family":"llama"}},{"name":"nomic-embed-text","details":{"family":"nomic-bert"}}]}`))
		return
	}
	q := question{key: r.Header.Get("Authorization")}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.asked = append(m.asked, q)
	holding := m.holding
	m.mu.Unlock()
	if holding != nil {
		select {
		case <-holding:
		case <-r.Context().Done():
			m.mu.Lock()
			m.gone++
			m.mu.Unlock()
		}
	}
	type vector struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	answer := struct {
		Data []vector `json:"data"`
	}{}
	for i := range q.Input {
		answer.Data = append(answer.Data, vector{i, []float32{1, 0}})
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// hold keeps answers back until release.
func (m *fakeModel) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holding = make(chan struct{})
}

func (m *fakeModel) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holding != nil {
		close(m.holding)
		m.holding = nil
	}
}

// questions are those so far.
func (m *fakeModel) questions() []question {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]question(nil), m.asked...)
}

// wait returns when there were so many questions.
func (m *fakeModel) wait(n int) []question {
	m.tb.Helper()
	eventually(m.tb, waitTime, func() error {
		if got := len(m.questions()); got < n {
			return fmt.Errorf("the model was asked %d times, not %d", got, n)
		}
		return nil
	})
	return m.questions()
}

// embedded are the flags of a server whose memory asks the model.
func embedded() []string { return []string{"--embedder-url", "$API", "--embedder-model", "m"} }

func memoryEffects() []effect {
	return []effect{
		{
			setting: "memory-language", args: []string{"--memory-language", "english"},
			see: func(s *stand) func() string {
				save(s.tb, s.process, "Les chevaux sont dans l'écurie")
				return once(fmt.Sprint(hits(s.tb, s.process, "cheval")))
			},
			with: "0", without: "1",
		},
		{
			setting: "vector-weight", args: []string{"--vector-weight", "1"},
			see: (*stand).shareOfVectors, with: "more than a half", without: "less",
		},
		{
			setting: "hold-origins", args: []string{"--hold-origins", "tool,web"},
			see: func(s *stand) func() string {
				_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "the stable is warm", Origin: loombridgev1.Origin_ORIGIN_WEB})
				must(s.tb, err)
				return once(fmt.Sprint(hits(s.tb, s.process, "stable")))
			},
			with: "0", without: "1",
		},
		{
			setting: "redact", args: []string{"--redact", "secrets"},
			see: func(s *stand) func() string {
				saved, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "the key AKIAIOSFODNN7EXAMPLE"})
				must(s.tb, err)
				return once(fmt.Sprint(saved.GetRedacted()["aws_access_key"]))
			},
			with: "1", without: "0",
		},
		{setting: "memory-limit", args: []string{"--memory-limit", "3"}, see: afterSaves(false), with: "3", without: "6"},
		{setting: "archive-limit", args: []string{"--archive-limit", "2"}, both: []string{"--memory-limit", "3"}, see: afterSaves(true), with: "2", without: "3"},
		{
			setting: "count-accesses", args: []string{"--count-accesses"},
			see: func(s *stand) func() string {
				_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "the stable is warm"})
				must(s.tb, err)
				got, err := s.bridge().MemoryQuery(s.ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "stable", AccessWeight: 0.5})
				must(s.tb, err)
				return once(fmt.Sprint(len(got.GetReceipt().GetDegraded())))
			},
			with: "1", without: "2",
		},
		{
			setting: "duplicates", args: []string{"--duplicates", "reinforce"},
			see: func(s *stand) func() string {
				for range 2 {
					_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "the stable is warm"})
					must(s.tb, err)
				}
				return once(fmt.Sprint(hits(s.tb, s.process, "stable")))
			},
			with: "1", without: "2",
		},
		{
			setting: "max-versions", args: []string{"--max-versions", "2"},
			see: func(s *stand) func() string {
				for i := range 5 {
					_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Key: "k", Replace: true, Text: fmt.Sprint("text ", i)})
					must(s.tb, err)
				}
				all, err := s.memory().ListRecords(s.ctx, &loombridgev1.ListRecordsRequest{AgentId: "a", Name: &loombridgev1.ListRecordsRequest_Key{Key: "k"}})
				must(s.tb, err)
				return once(fmt.Sprint(len(all.GetRecords())))
			},
			with: "3", without: "5",
		},
		{
			setting: "knowledge-endpoint", args: []string{"--knowledge-endpoint", "$API"},
			see: func(s *stand) func() string {
				_, err := s.contexts().Assemble(s.ctx, &loombridgev1.AssembleRequest{AgentId: "a", Goal: "repair the pump"})
				must(s.tb, err)
				return once(fmt.Sprint(len(s.model.questions()) > 0))
			},
			with: "true", without: "false",
		},
	}
}

// afterSaves saves six records and counts those in the archive, or outside of it.
func afterSaves(archived bool) func(s *stand) func() string {
	return func(s *stand) func() string {
		for i := range 6 {
			_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: fmt.Sprint("stable number ", i)})
			must(s.tb, err)
		}
		listed, err := loombridgev1.NewMemoryServiceClient(s.process.conn).ListRecords(s.ctx, &loombridgev1.ListRecordsRequest{AgentId: "a", Filter: fmt.Sprint("archived = ", archived)})
		must(s.tb, err)
		return once(fmt.Sprint(len(listed.GetRecords())))
	}
}

// shareOfVectors tells how much the vector of a record counts in its score, beside
// words that it has too.
func (s *stand) shareOfVectors() func() string {
	_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "an apple", Embedding: []float32{0, 1}, EmbeddingSpace: "x"})
	must(s.tb, err)
	found, err := s.bridge().MemoryQuery(s.ctx, &loombridgev1.MemoryQueryRequest{
		AgentId: "a", Query: "apple", Embedding: []float32{0, 1}, EmbeddingSpace: "x", Explain: true,
	})
	must(s.tb, err)
	for _, signal := range found.GetHits()[0].GetExplanation().GetSignals() {
		if signal.GetName() == "vector" && signal.GetShare() > 0.5 {
			return once("more than a half")
		}
	}
	return once("less")
}

func embedderEffects() []effect {
	saved := func(of func(q question) string) func(s *stand) func() string {
		return func(s *stand) func() string {
			save(s.tb, s.process, "text")
			return once(of(s.model.wait(1)[0]))
		}
	}
	found := func(s *stand) func() string {
		got, err := loombridgev1.NewMemoryServiceClient(s.conn).ListRecords(s.ctx, &loombridgev1.ListRecordsRequest{AgentId: "a", StatsOnly: true})
		must(s.tb, err)
		return once(got.GetStats().GetEmbedderSpace())
	}
	return []effect{
		{
			setting: "embedder", args: []string{"--embedder", "auto"}, change: func(s *stand, c *Config) { c.EmbedderHosts = "127.0.0.1:1," + s.model.Listener.Addr().String() },
			see: found, with: "127.0.0.1/nomic-embed-text", without: "",
		},
		{
			setting: "embedder-url", args: embedded(), after: 50 * time.Millisecond,
			see: func(s *stand) func() string {
				save(s.tb, s.process, "text")
				return func() string { return fmt.Sprint(len(s.model.questions()) > 0) }
			},
			with: "true", without: "false",
		},
		{
			setting: "embedder-model", args: []string{"--embedder-model", "other"}, both: embedded(),
			see: saved(func(q question) string { return q.Model }), with: "other", without: "m",
		},
		{
			setting: "embedder-key", args: []string{"--embedder-key", "sk-1"}, both: embedded(),
			see: saved(func(q question) string { return q.key }), with: "Bearer sk-1", without: "",
		},
		{
			setting: "embedder-dimensions", args: []string{"--embedder-dimensions", "2"}, both: embedded(),
			see: saved(func(q question) string { return fmt.Sprint(q.Dimensions) }), with: "2", without: "0",
		},
		{
			setting: "embedder-text-prefix", args: []string{"--embedder-text-prefix", "passage: "}, both: embedded(),
			see: saved(func(q question) string { return q.Input[0] }), with: "passage: text", without: "text",
		},
		{
			setting: "embedder-query-prefix", args: []string{"--embedder-query-prefix", "query: "}, both: embedded(),
			see: func(s *stand) func() string {
				hits(s.tb, s.process, "what")
				return once(s.model.wait(1)[0].Input[0])
			},
			with: "query: what", without: "what",
		},
		{
			setting: "embedder-space", args: []string{"--embedder-space", "ours"}, both: embedded(),
			see: func(s *stand) func() string {
				got, err := loombridgev1.NewMemoryServiceClient(s.conn).ListRecords(s.ctx, &loombridgev1.ListRecordsRequest{AgentId: "a", StatsOnly: true})
				must(s.tb, err)
				return once(got.GetStats().GetEmbedderSpace())
			},
			with: "ours", without: "127.0.0.1/m",
		},
	}
}

// eventsKept emits some events before the server starts that shows a setting.
func eventsKept(s *stand) {
	for range 3 {
		_, err := s.bridge().Emit(s.ctx, &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 1000)},
		})
		must(s.tb, err)
	}
}

// firstEvent is the sequence of the first event that is kept.
func (s *stand) firstEvent() func() string {
	return func() string {
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		stream, err := loombridgev1.NewEventServiceClient(s.conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
			AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: new(int64)}},
		})
		must(s.tb, err)
		ready, err := stream.Recv()
		must(s.tb, err)
		return fmt.Sprint(ready.GetReady().GetPositions()[0].GetAfterSequence() + 1)
	}
}

func eventEffects() []effect {
	return []effect{
		{
			setting: "events-max-age", args: []string{"--events-max-age", "1ms"}, before: eventsKept,
			see: (*stand).firstEvent, with: "4", without: "1", after: 1500 * time.Millisecond,
		},
		{
			setting: "events-max-bytes", args: []string{"--events-max-bytes", "2000"}, before: eventsKept,
			see: (*stand).firstEvent, with: "3", without: "1", after: 1500 * time.Millisecond,
		},
		{
			setting: "approval-timeout", args: []string{"--approval-timeout", "1ms"}, both: []string{"--config", "$DIR/bind.toml"},
			files: map[string]string{"bind.toml": "[[bind]]\napproval = \"always\"\n"},
			see: func(s *stand) func() string {
				MustWatch(s.tb, s.process)
				return func() string {
					ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
					defer cancel()
					_, err := s.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: s.agent, Name: "fs:list_dir"})
					return ended(err)
				}
			},
			with: "OK", without: "DeadlineExceeded",
		},
		{
			setting: "audit-retention", args: []string{"--audit-retention", "20ms"}, after: 200 * time.Millisecond,
			see: func(s *stand) func() string {
				auditTool(s.tb, s.process, s.agent, "fs:list_dir", "{}", "")
				return func() string {
					page, err := loombridgev1.NewToolServiceClient(s.conn).ListAudit(s.ctx, &loombridgev1.ListAuditRequest{AgentId: s.agent})
					must(s.tb, err)
					return fmt.Sprint(len(page.GetRecords()))
				}
			},
			with: "0", without: "1",
		},
		{
			setting: "retain-records", args: []string{"--retain-records", "20ms"}, after: 200 * time.Millisecond,
			see: func(s *stand) func() string {
				_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: s.agent, Text: "soon old"})
				must(s.tb, err)
				return func() string { return fmt.Sprint(hits(s.tb, s.process, "old")) }
			},
			with: "0", without: "1",
		},
		{
			setting: "retain-sessions", args: []string{"--retain-sessions", "20ms"}, after: 200 * time.Millisecond,
			see: func(s *stand) func() string {
				s.process.say(s.tb, "s", "soon old")
				return func() string { return fmt.Sprint(len(s.process.heard(s.tb, "s"))) }
			},
			with: "0", without: "1",
		},
	}
}

// scrubEffects are those of the reading that looks for damage.
func scrubEffects() []effect {
	scrubbed := func(s *stand) func() string {
		start := time.Now()
		return func() string {
			switch {
			case s.storeStatus(s.tb).GetScrubTime() != nil:
				return "read"
			case time.Since(start) < 500*time.Millisecond: // many times as long as reading it all takes
				return "too early to say"
			}
			return "not read"
		}
	}
	remember := func(s *stand) { save(s.tb, s.process, strings.Repeat("remembered ", 1000)) }
	return []effect{
		{
			setting: "scrub-rate", args: []string{"--scrub-rate", "1"}, change: func(_ *stand, c *Config) { c.Scrub.Interval = 20 * time.Millisecond }, before: remember, after: 600 * time.Millisecond,
			see: scrubbed, with: "not read", without: "read",
		},
	}
}

// backupEffects are those of the copies of the store.
func backupEffects() []effect {
	copies := []string{"--backup-dir", "$DIR-copies"}
	made := func(s *stand) func() string {
		first := ""
		return func() string {
			status := s.backups()
			last := status.GetLast().GetName()
			first = cmp.Or(first, last)
			switch {
			case status == nil:
				return "none"
			case last == first:
				return "few"
			}
			return "many"
		}
	}
	return []effect{
		{setting: "backup-dir", args: copies, both: []string{"--backup-interval", "20ms"}, see: made, with: "many", without: "none"},
		{setting: "backup-interval", args: []string{"--backup-interval", "20ms"}, both: copies, see: made, with: "many", without: "few", after: 200 * time.Millisecond},
		{
			setting: "backup-keep", args: []string{"--backup-keep", "1"}, both: slices.Concat(copies, []string{"--backup-interval", "0"}),
			see: func(s *stand) func() string {
				for range 3 {
					_, err := s.backUp(s.tb, false)
					must(s.tb, err)
				}
				all, err := s.admin().ListBackups(s.ctx, &loombridgev1.ListBackupsRequest{})
				must(s.tb, err)
				return once(fmt.Sprint(len(all.GetBackups())))
			},
			with: "1", without: "3",
		},
	}
}
