package figures

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// far is a store in PostgreSQL of which the figures are known.
type far struct{}

func (far) Schema() string        { return "loom" }
func (far) Self() registry.Bridge { return registry.Bridge{Name: "one"} }
func (far) Stats() pgkv.Stats {
	return pgkv.Stats{
		Calls: pgkv.Pool{InUse: 1, Most: 2, Waits: 3, WaitTime: 4 * time.Second}, Views: pgkv.Pool{InUse: 5}, Commits: 6, Conflicts: 7, Unknown: 8, Joins: 9,
		CommitTime: 1500 * time.Millisecond,
	}
}

// gathered are all series of collectors: name and labels, with the value.
func gathered(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if counts := m.GetCounter() != nil; counts != strings.HasSuffix(f.GetName(), "_total") {
				t.Errorf("%s is a counter: %v", f.GetName(), counts)
			}
		}
	}
	return all
}

// series are values by name and labels.
type series map[string]float64

func (m series) has(t *testing.T, want series) {
	t.Helper()
	for name, value := range want {
		if got, ok := m[name]; !ok || got != value {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, value)
		}
	}
}

func TestFarStore(t *testing.T) {
	t.Parallel()
	series(gathered(t, ofFarStore(far{}))).has(t, series{
		"loom_bridge_postgres_connections one calls loom": 1, "loom_bridge_postgres_connections one views loom": 5,
		"loom_bridge_postgres_connection_wait_seconds_total one calls loom": 4, "loom_bridge_postgres_commits_total one loom": 6,
		"loom_bridge_postgres_unknown_outcomes_total one loom": 8, "loom_bridge_postgres_transaction_seconds_total one loom": 1.5,
	})
}

// TestStoreHealth: damage of one keyspace shows in its own series alone.
func TestStoreHealth(t *testing.T) {
	t.Parallel()
	health, report := &kv.Health{}, integrity.Report{}
	m := ofHealth(health, func() integrity.Report { return report })
	series(gathered(t, m)).has(t, series{
		"loom_bridge_store_writable": 1, "loom_bridge_store_damaged records": 0, "loom_bridge_store_scrub_last_end_seconds": 0,
	})
	health.Damage(kv.Records, errors.New("damaged"))
	health.Fail(errors.New("full"))
	series(gathered(t, m)).has(t, series{
		"loom_bridge_store_writable": 0, "loom_bridge_store_damaged records": 1, "loom_bridge_store_damaged log": 0,
	})
	report = integrity.Report{Passes: 2, Bytes: 3, Damaged: 4, End: time.UnixMilli(1500)}
	series(gathered(t, m)).has(t, series{
		"loom_bridge_store_scrub_passes_total": 2, "loom_bridge_store_scrub_bytes_total": 3, "loom_bridge_store_scrub_findings": 4,
		"loom_bridge_store_scrub_last_end_seconds": 1.5,
	})
	if n := len(gathered(t, m)); n != 5+len(kv.Keyspaces())+1 {
		t.Errorf("%d series", n)
	}
}

// embedder fails for the text that says so.
type embedder struct{}

func (embedder) Space() string { return "e" }
func (embedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if texts[0] == "fail" {
		return nil, errors.New("failed")
	}
	return make([][]float32, len(texts)), nil
}

func TestEmbedder(t *testing.T) {
	t.Parallel()
	var none *Metrics
	if none.CountEmbedder(embedder{}) != embed.Embedder(embedder{}) || none.Calls() != nil || none.Watch(nil, nil, nil, nil)() != nil {
		t.Error("figures that are not served do something")
	}
	none.WatchMesh(nil)
	none.WatchBackups(nil)
	none.WatchRedaction(nil)
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.WatchMesh(nil)
	m.WatchBackups(nil)
	m.WatchRedaction(nil)
	if m.CountEmbedder(nil) != nil {
		t.Error("there is an embedder")
	}
	e := m.CountEmbedder(embedder{})
	for _, text := range []string{"x", "fail", "y"} {
		_, _ = e.Embed(t.Context(), []string{text})
	}
	families, err := m.registry.Gather()
	if err != nil || len(families) != 2 {
		t.Fatalf("%v, %v", families, err)
	}
	for _, one := range families[0].GetMetric() {
		want := map[string]float64{"ok": 2, "failed": 1}[one.GetLabel()[0].GetValue()]
		if one.GetCounter().GetValue() != want {
			t.Errorf("%v", one)
		}
	}
}

// TestServe: the figures are answered to GET alone, until they are closed.
func TestServe(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := New().Serve(listener)
	url := "http://" + listener.Addr().String()
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/": http.StatusNotFound, "/metrics/x": http.StatusNotFound} {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want || want == http.StatusOK && !strings.Contains(string(text), "go_goroutines") {
			t.Errorf("%s: %d, %d bytes", path, answer.StatusCode, len(text))
		}
	}
	answer, err := http.Post(url+"/metrics", "text/plain", nil)
	if err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v, %v", answer, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url + "/metrics"); err == nil {
		t.Error("closed figures are answered")
	}
}
