package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustMeasure starts a server with metrics and returns where they are.
func MustMeasure(tb testing.TB, dir string, args ...string) (p *process, address string) {
	tb.Helper()
	p = MustRun(tb, dir, append([]string{"--metrics-addr", "127.0.0.1:0"}, args...)...)
	return p, p.metrics(tb)
}

// metrics is where the log says that metrics are served.
func (p *process) metrics(tb testing.TB) (address string) {
	tb.Helper()
	place := regexp.MustCompile(`metrics +http://(\S+)/metrics`)
	eventually(tb, waitTime, func() error {
		found := place.FindStringSubmatch(p.Log.String())
		if found == nil {
			return errors.New("the log names no metrics")
		}
		address = found[1]
		return nil
	})
	return address
}

// scrape returns all figures by their names with labels.
func scrape(tb testing.TB, address string) map[string]float64 {
	tb.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	must(tb, err)
	defer response.Body.Close()
	found := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if cut := strings.LastIndex(lines.Text(), "} "); cut >= 0 {
			name, text = lines.Text()[:cut+1], lines.Text()[cut+2:]
		}
		if value, err := strconv.ParseFloat(text, 64); err == nil && !strings.HasPrefix(name, "#") {
			found[name] = value
		}
	}
	return found
}

// helloOf is the first message of an agent's stream.
func helloOf(agent string, tools ...*loombridgev1.ToolDescriptor) *loombridgev1.AttachRequest {
	return &loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{AgentId: agent, Tools: tools}}}
}

// callTool calls a tool as agent a, with JSON arguments.
func callTool(tb testing.TB, p *process, name, args string) (*loombridgev1.ToolResponse, error) {
	tb.Helper()
	return p.bridge().Tool(tb.Context(), &loombridgev1.ToolRequest{
		AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
	})
}

// checkNames checks the names of figures: none has the words of another one, and each ends as its kind
// says.
func checkNames(tb testing.TB, address string) {
	tb.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	must(tb, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(tb, err)
	all := regexp.MustCompile(`# HELP (loom_bridge_[a-z_]+) ([A-Z1].*\.)\n# TYPE \S+ (\w+)\n`).FindAllStringSubmatch(string(text), -1)
	if lines := strings.Count(string(text), "# HELP loom_bridge_"); len(all) != lines || lines < 30 {
		tb.Errorf("%d figures of %d have a sentence", len(all), lines)
	}
	words := map[string]string{}
	for _, one := range all {
		if other, twice := words[one[2]]; twice {
			tb.Errorf("%s says the same as %s", one[1], other)
		}
		words[one[2]] = one[1]
		if (one[3] == "counter") != strings.HasSuffix(one[1], "_total") {
			tb.Errorf("%s is a %s", one[1], one[3])
		}
	}
}

// What operators ask first has a figure: how much is stored, who is connected and
// how far behind, what was called and what was refused.
func TestMetricsTellWhatIsStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "long.txt"), []byte(strings.Repeat("a long line\n", 1000)), 0o600))
	first := MustRun(t, dir)
	for i := range 3 {
		save(t, first, fmt.Sprint("record ", i))
	}
	_, err := callTool(t, first, "fs:read_file", `{"path":"long.txt"}`)
	must(t, err)
	for range 5 {
		_, err := first.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "news"})
		must(t, err)
	}
	must(t, first.Stop())

	p, address := MustMeasure(t, dir)
	eventually(t, waitTime, func() error {
		got := scrape(t, address)
		for name, want := range map[string]float64{
			"loom_bridge_records": 3, "loom_bridge_blobs": 1, "loom_bridge_blob_bytes": 12000,
			"loom_bridge_topics": 1, "loom_bridge_events": 5, "loom_bridge_embedder_pending_records": 0,
		} {
			if got[name] != want {
				return fmt.Errorf("%s = %v, want %v", name, got[name], want)
			}
		}
		if got["loom_bridge_event_bytes"] < 5 || got[`loom_bridge_store_bytes{keyspace="records"}`] == 0 {
			return fmt.Errorf("bytes: %v", got)
		}
		return nil
	})
	checkNames(t, address)
	before := scrape(t, address)
	save(t, p, "synced")
	after := scrape(t, address)
	for _, name := range []string{"store_commits_total", "store_syncs_total", "store_sync_seconds_total", "store_log_bytes_total"} {
		if after["loom_bridge_"+name] <= before["loom_bridge_"+name] {
			t.Errorf("%s stays at %v", name, after["loom_bridge_"+name])
		}
	}
}

// Calls of tools are counted by tool and outcome, refusals by reason. Names that
// callers choose add no time series.
//
// E07, Q03
func TestMetricsCountToolsAndRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text"), 0o600))
	p, address := MustMeasure(t, dir)
	_, err := callTool(t, p, "fs:read_file", `{"path":"a.txt"}`)
	must(t, err)
	_, err = callTool(t, p, "read_file", `{"path":"a.txt"}`)
	must(t, err)
	_, err = callTool(t, p, "fs:read_file", `{"path":"b.txt"}`)
	must(t, err)
	for _, bad := range []string{"x:1", "x:2", "x:3"} {
		if _, err := callTool(t, p, bad, `{}`); err == nil {
			t.Errorf("%s was called", bad)
		}
	}
	if _, err := callTool(t, p, "fs:read_file", `{"path":7}`); err == nil {
		t.Error("a path that is a number was taken")
	}
	_, err = loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c", Name: "fs:stat", Arguments: `{"path":"a.txt"}`})
	must(t, err)
	prompt, err := contexts.New(p.conn).Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", Goal: "report"})
	must(t, err)
	got := scrape(t, address)
	for name, want := range map[string]float64{
		`tool_calls_total{outcome="ok",tool="fs:read_file"}`:        2,
		`tool_calls_total{outcome="not_found",tool="fs:read_file"}`: 1,
		`tool_calls_total{outcome="refused",tool="fs:read_file"}`:   1,
		`tool_calls_total{outcome="not_found",tool="unknown"}`:      3,
		`tool_calls_total{outcome="ok",tool="fs:stat"}`:             1,
		`refused_total{reason="TOOL_NOT_FOUND"}`:                    3,
		`refused_total{reason="INVALID_ARGUMENTS"}`:                 1,
		`prompts_total`:     1,
		`prompt_tokens_sum`: float64(prompt.GetTokens().GetTokens()),
		`agents_attached`:   0,
		`subscriptions`:     0,
	} {
		if got["loom_bridge_"+name] != want {
			t.Errorf("%s = %v, want %v", name, got["loom_bridge_"+name], want)
		}
	}
	status, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(t.Context(), &loombridgev1.GetStatusRequest{})
	must(t, err)
	counted := status.GetToolCalls()
	if want := map[string]int64{"ok": 3, "not_found": 4, "refused": 1}; !maps.Equal(counted, want) {
		t.Errorf("the status counts %v, want %v", counted, want)
	}
	for name := range got {
		if strings.Contains(name, "x:1") {
			t.Errorf("a caller's name is a label: %s", name)
		}
	}
}

// A refusal before the request is read counts, too.
func TestMetricsCountStrangers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, address := MustMeasure(t, dir, "--credentials", MustCallers(t, dir, "acme"))
	for range 3 {
		refused(t, p.list(t.Context(), "stranger", "a"), "not known")
	}
	if got := scrape(t, address)[`loom_bridge_refused_total{reason="UNAUTHENTICATED"}`]; got != 3 {
		t.Errorf("%v refused", got)
	}
}

// loom.v1 at an address of its own is counted with the rest.
func TestMetricsCountBothFaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "l")
	_, address := MustMeasure(t, dir, "--credentials", MustCallers(t, dir, "acme"), "--loom-addr", "unix:"+socket, "--loom-tenant", "acme")
	_, err := loomv1pb.NewBridgeClient(MustDial(t, "unix:"+socket)).ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c", Name: "no:tool"})
	must(t, err)
	if got := scrape(t, address)[`loom_bridge_tool_calls_total{outcome="not_found",tool="unknown"}`]; got != 1 {
		t.Errorf("%v calls", got)
	}
}

// Who is connected, and how far behind its reader is.
func TestMetricsTellWhoIsConnected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, address := MustMeasure(t, dir)
	attach, err := p.bridge().Attach(t.Context())
	must(t, err)
	must(t, attach.Send(helloOf("helper")))
	_, err = attach.Recv()
	must(t, err)
	stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(t.Context(), &loombridgev1.SubscribeRequest{
		AgentId: "slow", Topics: []*loombridgev1.TopicPosition{{Topic: "flood"}},
	})
	must(t, err)
	_, err = stream.Recv()
	must(t, err)
	for range 24 { // more than flow control takes from a stream that nobody reads
		_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "flood", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 256<<10)},
		})
		must(t, err)
	}
	got := scrape(t, address)
	if got["loom_bridge_agents_attached"] != 1 || got["loom_bridge_subscriptions"] < 1 || got["loom_bridge_subscription_backlog_max_events"] < 1 ||
		got["loom_bridge_subscription_backlog_events"] < got["loom_bridge_subscription_backlog_max_events"] {
		t.Errorf("%v attached, %v subscriptions, backlog %v, at most %v", got["loom_bridge_agents_attached"], got["loom_bridge_subscriptions"],
			got["loom_bridge_subscription_backlog_events"], got["loom_bridge_subscription_backlog_max_events"])
	}
}

// What the embedder was asked is counted, and what it could not do.
func TestMetricsCountTheEmbedder(t *testing.T) {
	t.Parallel()
	fail := false
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || fail {
			http.Error(w, "down", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"data":[`)
		for i := range asked.Input {
			fmt.Fprintf(w, `%s{"index":%d,"embedding":[1,0]}`, map[bool]string{true: ",", false: ""}[i > 0], i)
		}
		fmt.Fprint(w, `]}`)
	}))
	defer api.Close()
	p, address := MustMeasure(t, t.TempDir(), "--embedder-url", api.URL, "--embedder-model", "m")
	hits(t, p, "one query")
	fail = true
	hits(t, p, "another query")
	got := scrape(t, address)
	if ok, failed := got[`loom_bridge_embedder_requests_total{outcome="ok"}`], got[`loom_bridge_embedder_requests_total{outcome="failed"}`]; ok < 1 || failed < 1 {
		t.Errorf("%v ok, %v failed", ok, failed)
	}
}

// server/docs/metrics.md names every figure of the server's own.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/metrics.md")
	must(t, err)
	p, address := MustMeasure(t, t.TempDir(), "--embedder-url", "http://127.0.0.1:1", "--embedder-model", "m")
	hits(t, p, "x")
	_, err = callTool(t, p, "x:1", `{}`)
	if err == nil {
		t.Fatal("a tool that is not there was called")
	}
	eventually(t, waitTime, func() error {
		if _, ok := scrape(t, address)["loom_bridge_records"]; !ok {
			return fmt.Errorf("no census yet")
		}
		return nil
	})
	family := regexp.MustCompile(`^loom_bridge_(\w+?)(_bucket|_sum|_count)?(\{|$)`)
	for name := range scrape(t, address) {
		if found := family.FindStringSubmatch(name); found != nil && !strings.Contains(string(page), "`"+found[1]+"`") {
			t.Errorf("server/docs/metrics.md does not name %s", found[1])
		}
	}
}
