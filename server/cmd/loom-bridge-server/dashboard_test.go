package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// shownSpan is a span as the page of loom.v1's core reads it.
type shownSpan struct {
	TraceID    string            `json:"trace_id"`
	SpanID     string            `json:"span_id"`
	Parent     *string           `json:"parent_span_id"`
	Name       string            `json:"name"`
	Start      int64             `json:"start_time"`
	Duration   int64             `json:"duration"`
	Attributes map[string]string `json:"attributes"`
	Status     string            `json:"status"`
	Error      *string           `json:"error_message"`
}

// seenAt asks for spans.
func seenAt(tb testing.TB, base, path string, headers ...string) []shownSpan {
	tb.Helper()
	var all []shownSpan
	must(tb, json.Unmarshal([]byte(exchange{method: "GET", path: path, headers: headers, want: http.StatusOK}.check(tb, base)), &all))
	return all
}

// serverSentTo opens a stream of the page, which reads by the time that this returns.
func serverSentTo(tb testing.TB, base, path string) *bufio.Scanner {
	tb.Helper()
	answer, err := http.DefaultClient.Do(exchange{method: "GET", path: path}.request(tb, base))
	must(tb, err)
	tb.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	if answer.StatusCode != http.StatusOK || !lines.Scan() {
		tb.Fatalf("%s: %s, %v", path, answer.Status, lines.Err())
	}
	return lines
}

// The calls of agents are spans on the page, the newest first, with their parts below them and their
// failures named; a trace is found by its id, and who has the stream open gets what comes. Nothing
// that was said is in them, and no secret. An event is emitted on demand.
//
// R19
func TestDashboardSpans(t *testing.T) {
	t.Parallel()
	env := environment{vars: map[string]string{"LOOM_DASHBOARD": "true", "LOOM_DASHBOARD_PORT": "0", "LOOM_DASHBOARD_DEBUG": "true"}}
	p := MustRunIn(t, env, "--addr", "127.0.0.1:0", "--http-addr", "", "--data-dir", t.TempDir(), "--workspace", t.TempDir())
	base := p.httpURL(t)
	if got := (exchange{method: "GET", path: "/api/spans/recent", want: http.StatusOK}).check(t, base); got != "[]\n" {
		t.Errorf("before any call: %s", got)
	}
	lines := serverSentTo(t, base, "/api/spans/stream")
	events := serverSentTo(t, base, "/api/events/stream")
	ctx := traced(t.Context())
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345" // gitleaks:allow: invented
	_, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a1", Text: "Ann likes pears, " + canaryText})
	must(t, err)
	_, err = p.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: "a1", SessionId: secret, Name: "fs:list_dir", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"."}`}})
	must(t, err)
	if _, err = p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a1", Limit: -1, Query: "x"}); err == nil {
		t.Error("a negative limit is taken")
	}
	var came []shownSpan
	for !slices.ContainsFunc(came, func(s shownSpan) bool { return s.Name == "search_memory" }) && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: ["); ok {
			var some []shownSpan
			must(t, json.Unmarshal([]byte("["+data), &some))
			came = append(came, some...)
		} else if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok && name != "spans" && name != "ping" {
			t.Errorf("the stream has a message %s", name)
		}
	}
	all := seenAt(t, base, "/api/spans/recent")
	if fmt.Sprint(len(all)) != fmt.Sprint(len(came)) || len(all) == 0 || all[0].Name != "search_memory" || all[0].Status != "error" || all[0].Error == nil || *all[0].Error != "INVALID_REQUEST" {
		t.Errorf("%d spans came by the stream; the last ones are %+v", len(came), all)
	}
	if one := seenAt(t, base, "/api/spans/recent?limit=1"); len(one) != 1 || one[0].SpanID != all[0].SpanID {
		t.Errorf("the newest one is %+v", one)
	}
	if most := seenAt(t, base, "/api/spans/recent?limit=5000"); len(most) != len(all) {
		t.Errorf("%d of %d spans", len(most), len(all))
	}
	whole := seenAt(t, base, "/api/traces/"+traceOfTest)
	var call shownSpan
	for _, one := range whole {
		if one.TraceID != traceOfTest || one.Start <= 0 || one.Duration <= 0 || one.Parent == nil {
			t.Errorf("of the trace is %+v", one)
		}
		if one.Name == "execute_tool fs:list_dir" {
			call = one
		}
	}
	if call.Status != "unset" || call.Error != nil || *call.Parent != callerSpan || call.Attributes["gen_ai.conversation.id"] != "[redacted:github_token]" {
		t.Errorf("the call is %+v", call)
	}
	if i := slices.IndexFunc(whole, func(s shownSpan) bool { return s.Name == "run_tool fs:list_dir" }); i < 0 || *whole[i].Parent != call.SpanID {
		t.Errorf("no part below the call: %+v", whole)
	}
	if text := fmt.Sprint(came, all, whole); strings.Contains(text, canaryText) || strings.Contains(text, "ghp_") {
		t.Errorf("the page shows what was said: %s", text)
	}
	if none := seenAt(t, base, "/api/traces/"+strings.Repeat("1", 32)); len(none) != 0 {
		t.Errorf("of no trace: %+v", none)
	}
	const bad, json = http.StatusBadRequest, "INVALID_REQUEST"
	for _, a := range []exchange{
		{"GET", "/api/spans/recent?limit=-1", "", nil, bad, json},
		{"GET", "/api/spans/recent?limit=1e3", "", nil, bad, json},
		{"GET", "/api/traces/xyz", "", nil, bad, json},
		{"GET", "/api/traces/" + strings.Repeat("0", 32), "", nil, bad, json},
		{"POST", "/api/debug/emit", "[", nil, bad, json},
		{"POST", "/api/debug/emit", `{"topic":"a..b"}`, nil, bad, "topic"},
		{"POST", "/api/debug/emit", `{"topic":"agent.status"}`, nil, bad, "RESERVED_TOPIC"},
		{"POST", "/api/debug/emit", "", nil, 200, `"event_id":"`},
		{"POST", "/api/debug/emit", `{"topic":"fruit.pears","sender":"ann","payload":{"n":1}}`, nil, 200, `"event_id":"`},
	} {
		a.check(t, base)
	}
	for _, want := range []string{`"topic":"debug.event","sender":"dashboard"`, `"topic":"fruit.pears","sender":"ann"`, `"payload_preview":"{\"n\":1}"`} {
		for !strings.Contains(events.Text(), want) {
			if !events.Scan() {
				t.Fatalf("no event with %s: %v", want, events.Err())
			}
		}
	}
	must(t, p.Stop()) // which ends the streams
}

// With credentials only who runs the server sees spans, of its own tenant alone; nobody emits for an
// agent of somebody else. Without the variables nothing of it is there.
//
// R19
func TestDashboardOfTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for _, c := range []struct{ token, tenant, more string }{{"boss", "one", "operates = true"}, {"other", "two", "operates = true"}, {"agent", "one", ""}} {
		fmt.Fprintf(&text, "[[credential]]\ntoken_sha256 = %q\ntenant = %q\nagents = [%q]\n%s\n", hashOf(c.token), c.tenant, c.token, c.more)
	}
	path := filepath.Join(dir, "callers.toml")
	must(t, os.WriteFile(path, []byte(text.String()), 0o600))
	as := func(token string) string { return "Authorization: Bearer " + token }
	for _, debug := range []string{"true", ""} {
		env := environment{vars: map[string]string{"LOOM_DASHBOARD": "true", "LOOM_DASHBOARD_PORT": "0", "LOOM_DASHBOARD_DEBUG": debug}}
		p := MustRunIn(t, env, "--addr", "127.0.0.1:0", "--http-addr", "", "--data-dir", t.TempDir(), "--workspace", t.TempDir(), "--credentials", path)
		base := p.httpURL(t)
		exchange{"POST", "/v1/memories", `{"agent_id":"agent","text":"Ann likes pears."}`, []string{as("agent")}, 200, ""}.check(t, base)
		for _, path := range []string{"/api/spans/recent", "/api/spans/stream", "/api/traces/" + traceOfTest} {
			exchange{"GET", path, "", []string{as("agent")}, http.StatusForbidden, "OPERATOR_REQUIRED"}.check(t, base)
			exchange{"GET", path, "", nil, http.StatusUnauthorized, ""}.check(t, base)
		}
		if all := seenAt(t, base, "/api/spans/recent", as("boss")); len(all) < 2 || !slices.ContainsFunc(all, func(s shownSpan) bool { return s.Name == "create_memory" }) {
			t.Errorf("its operator sees %+v", all)
		}
		if all := seenAt(t, base, "/api/spans/recent", as("other")); len(all) > 0 {
			t.Errorf("another tenant's operator sees %+v", all)
		}
		emit := exchange{"POST", "/api/debug/emit", `{"sender":"agent"}`, []string{as("boss")}, http.StatusForbidden, "LOOM_DASHBOARD_DEBUG"}
		if debug != "" {
			emit.holds = "AGENT_NOT_OWNED"
			exchange{"POST", "/api/debug/emit", `{"sender":"boss"}`, []string{as("boss")}, 200, "event_id"}.check(t, base)
		}
		emit.check(t, base)
		must(t, p.Stop())
	}
	p := MustRun(t, t.TempDir(), "--http-addr", "127.0.0.1:0")
	exchange{"GET", "/api/spans/recent", "", nil, http.StatusNotFound, ""}.check(t, p.httpURL(t))
}
