package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// collected is a collector that keeps what it is given.
type collected struct {
	collector.UnimplementedTraceServiceServer

	mu  sync.Mutex
	all []*trace.ResourceSpans // guarded by mu
}

func (s *collected) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r.GetResourceSpans()...)
	return new(collector.ExportTraceServiceResponse), nil
}

// ServeHTTP takes the same over HTTP.
func (s *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var given collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &given) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = s.Export(r.Context(), &given) // it has no errors
	_, _ = w.Write([]byte{})             // an empty answer, as protobuf
}

// named are the spans by their names.
func (s *collected) named() map[string][]*trace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string][]*trace.Span{}
	for _, of := range s.all {
		for _, scope := range of.GetScopeSpans() {
			for _, one := range scope.GetSpans() {
				found[one.GetName()] = append(found[one.GetName()], one)
			}
		}
	}
	return found
}

// said are the attributes of a span, as texts.
func said(one *trace.Span) map[string]string {
	all := map[string]string{}
	for _, a := range one.GetAttributes() {
		all[a.GetKey()] = strings.TrimSpace(strings.SplitN(a.GetValue().String(), ":", 2)[1])
	}
	return all
}

// mustCollect starts a collector that speaks gRPC, and returns its address.
func mustCollect(t *testing.T, into *collected) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, into)
	go func() { _ = s.Serve(listener) }() // it ends with the test
	t.Cleanup(s.Stop)
	return "http://" + listener.Addr().String()
}

const (
	canaryText  = "canary-7c1f"
	traceOfTest = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
)

// loop makes the calls of an agent that lives for one turn, within a trace of its own.
func loop(t *testing.T, p *apart) {
	t.Helper()
	ctx := traced(t.Context())
	calls := p.bridge()
	_, err := calls.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a1", Text: "Ann likes pears, " + canaryText})
	must(t, err)
	found, err := calls.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a1", Query: "pears " + canaryText})
	must(t, err)
	if len(found.GetHits()) != 1 {
		t.Errorf("found %v", found.GetHits())
	}
	_, err = calls.Tool(ctx, &loombridgev1.ToolRequest{AgentId: "a1", SessionId: "s1", Name: "fs:list_dir", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"."}`}})
	must(t, err)
	_, err = loombridgev1.NewPromptServiceClient(p.conn).Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: "a1", SessionId: "s1", Goal: "pears " + canaryText, MaxTokens: 4000})
	must(t, err)
	_, err = calls.Emit(ctx, &loombridgev1.EmitRequest{AgentId: "a1", Topic: "fruit.pears"})
	must(t, err)
	if _, err = calls.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a1", Limit: -1, Query: "x"}); err == nil {
		t.Error("a negative limit is taken")
	}
}

// leadsToTrace reports whether a figure of /metrics leads to the trace of the test.
func leadsToTrace(tb testing.TB, base string) bool {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, base+"/metrics", nil)
	must(tb, err)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	answer, err := http.DefaultClient.Do(request)
	must(tb, err)
	body, err := io.ReadAll(answer.Body)
	must(tb, err)
	must(tb, answer.Body.Close())
	return strings.Contains(string(body), `trace_id="`+traceOfTest+`"`)
}

// traced is a context whose calls belong to the trace of the test.
func traced(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "traceparent", "00-"+traceOfTest+"-"+callerSpan+"-01")
}

// end stops the server, which exports the rest.
func (a *apart) end(t *testing.T) {
	t.Helper()
	must(t, a.command.Process.Signal(syscall.SIGTERM))
	must(t, a.command.Wait())
}

// The spans of an agent's calls have the names and attributes of the conventions, lie below the
// caller's, have the parts that take time below them, and hold nothing that was said.
//
// Z49
func TestTraces(t *testing.T) {
	t.Parallel()
	var got collected
	p := MustRunApart(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + mustCollect(t, &got), "OTEL_SERVICE_NAME=hand"}, "--otel")
	loop(t, p)
	p.end(t)
	all := got.named()
	for name, want := range map[string]map[string]string{
		"create_memory":            {"gen_ai.operation.name": `"create_memory"`, "gen_ai.agent.id": `"a1"`, "gen_ai.memory.record.count": "1"},
		"search_memory":            {"gen_ai.operation.name": `"search_memory"`, "gen_ai.memory.record.count": "1"},
		"execute_tool fs:list_dir": {"gen_ai.operation.name": `"execute_tool"`, "gen_ai.tool.name": `"fs:list_dir"`, "gen_ai.conversation.id": `"s1"`, "loom_bridge.tool.outcome": `"ok"`},
		"assemble_prompt":          {"loom_bridge.prompt.folds": "0"},
		"send":                     {"messaging.destination.name": `"fruit.pears"`},
	} {
		if len(all[name]) == 0 {
			t.Errorf("no span %q among %v", name, slices.Sorted(maps.Keys(all)))
			continue
		}
		one := all[name][0]
		if hex.EncodeToString(one.GetTraceId()) != traceOfTest || hex.EncodeToString(one.GetParentSpanId()) != callerSpan {
			t.Errorf("%s is not below the caller's: %x %x", name, one.GetTraceId(), one.GetParentSpanId())
		}
		attributes := said(one)
		for key, value := range want {
			if attributes[key] != value {
				t.Errorf("%s has %s %q, want %q", name, key, attributes[key], value)
			}
		}
	}
	refused := 0
	for _, one := range all["search_memory"] {
		if said(one)["error.type"] != "" {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d refused queries say why: %v", refused, all["search_memory"])
	}
	for part, whole := range map[string]string{"commit": "create_memory", "run_tool fs:list_dir": "execute_tool fs:list_dir", "ask_source user_memory": "assemble_prompt"} {
		if len(all[whole]) == 0 || !slices.ContainsFunc(all[part], func(one *trace.Span) bool { return string(one.GetParentSpanId()) == string(all[whole][0].GetSpanId()) }) {
			t.Errorf("no %s below %s among %v", part, whole, slices.Sorted(maps.Keys(all)))
		}
	}
	for _, of := range got.all {
		if text := of.String(); strings.Contains(text, canaryText) || !strings.Contains(text, `"hand"`) {
			t.Errorf("what is exported: %s", text)
		}
	}
}

// Where the conventions' own variable asks for it, spans hold what was said, with marks in place
// of secrets and within bounds, and the exported batches are small enough for a collector.
//
// Z49
func TestTracesWithContents(t *testing.T) {
	t.Parallel()
	var got collected
	p := MustRunApart(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + mustCollect(t, &got), "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"}, "--otel")
	loop(t, p)
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345" // gitleaks:allow: invented
	ctx := traced(t.Context())
	sessions, prompts := loombridgev1.NewSessionServiceClient(p.conn), loombridgev1.NewPromptServiceClient(p.conn)
	for n := range 60 {
		_, err := sessions.AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{AgentId: "a1", SessionId: "long", Messages: []*loombridgev1.Message{
			{Role: loombridgev1.Role_ROLE_USER, Content: fmt.Sprintf("turn %d, %s, %s", n, secret, strings.Repeat("\x01 word ", 600))},
		}})
		must(t, err)
		_, err = p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a2", Text: strings.Repeat("z", 4090) + " token " + secret})
		must(t, err)
	}
	_, err := prompts.Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: "a1", SessionId: "long", System: "Be brief.", MaxTokens: 100_000})
	must(t, err)
	p.end(t)
	all := got.named()
	for name, want := range map[string]map[string]string{
		"create_memory":            {"gen_ai.memory.records": "likes pears, " + canaryText},
		"search_memory":            {"gen_ai.memory.query.text": "pears " + canaryText, "gen_ai.memory.records": "likes pears, " + canaryText},
		"execute_tool fs:list_dir": {"gen_ai.tool.call.arguments": `{\"path\":\".\"}`, "gen_ai.tool.call.result": "entries"},
		"assemble_prompt":          {"gen_ai.input.messages": "pears " + canaryText},
	} {
		if len(all[name]) == 0 {
			t.Errorf("no span %q", name)
			continue
		}
		attributes := said(all[name][0])
		for key, value := range want {
			if !strings.Contains(attributes[key], value) {
				t.Errorf("%s has %s %s, want %q in it", name, key, attributes[key], value)
			}
		}
	}
	last := said(all["assemble_prompt"][1])
	if messages := last["gen_ai.input.messages"]; !strings.Contains(messages, "turn 59, [redacted:github_token]") || strings.Contains(messages, "turn 2,") || last["loom_bridge.prompt.messages_not_shown"] == "" {
		t.Errorf("the newest messages with marks are wanted: %s", last)
	}
	if !strings.Contains(last["gen_ai.system_instructions"], "Be brief.") {
		t.Errorf("instructions %s", last["gen_ai.system_instructions"])
	}
	for _, of := range got.all {
		if size := proto.Size(of); size > 4<<20 || strings.Contains(of.String(), "ghp_") {
			t.Errorf("%d bytes are exported at once, a secret among them: %t", size, strings.Contains(of.String(), "ghp_"))
		}
	}
}

// The same goes over HTTP. A figure of a call leads to its trace.
func TestTracesOverHTTP(t *testing.T) {
	t.Parallel()
	var got collected
	at := httptest.NewServer(&got)
	t.Cleanup(at.Close)
	metrics := freeAddress(t)
	p := MustRunApart(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + at.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, "--otel", "--metrics-addr", metrics)
	loop(t, p)
	if !leadsToTrace(t, "http://"+metrics) {
		t.Error("no figure leads to the trace")
	}
	p.end(t)
	if all := got.named(); len(all["create_memory"]) != 1 {
		t.Errorf("got %v", slices.Sorted(maps.Keys(all)))
	}
}

// Without a collector all goes on, also the end.
func TestTracesWithoutACollector(t *testing.T) {
	t.Parallel()
	p := MustRunApart(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}, "--otel")
	loop(t, p)
	p.end(t)
}

// A protocol that there is not is refused at the start, by name.
func TestTracesOfAnUnknownProtocol(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	err := runBriefly(t, "--addr=127.0.0.1:0", "--http-addr=off", "--data-dir="+t.TempDir(), "--workspace="+t.TempDir(), "--otel")
	if err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Error(err)
	}
}

// So are contents that are asked for in a word that there is not.
func TestTracesWithContentsOfAnUnknownKind(t *testing.T) {
	t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "yes")
	err := runBriefly(t, "--addr=127.0.0.1:0", "--http-addr=off", "--data-dir="+t.TempDir(), "--workspace="+t.TempDir(), "--otel")
	if err == nil || !strings.Contains(err.Error(), "SPAN_ONLY") {
		t.Error(err)
	}
}
