package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// mcpAddress is where a server says that hosts are served.
var mcpAddress = regexp.MustCompile(`mcp +(https?://\S+)`)

// mcpURL waits for the address of the Model Context Protocol.
func (p *process) mcpURL(tb testing.TB) string {
	tb.Helper()
	var found []string
	eventually(tb, waitTime, func() error {
		if found = mcpAddress.FindStringSubmatch(p.Log.String()); found == nil {
			return errors.New("the log does not say where hosts are served")
		}
		return nil
	})
	return found[1]
}

// bearer sends a token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// host is a host of the protocol, as the library that others use has it.
type host struct {
	tb testing.TB
	*sdk.ClientSession
}

// dialMCP connects a host that speaks a version.
func dialMCP(ctx context.Context, url, version, token string, options *sdk.ClientOptions) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
	transport := &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1}
	return client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
}

// MustHost is dialMCP for one that has to be let in.
func MustHost(tb testing.TB, url, version, token string, options *sdk.ClientOptions) host {
	tb.Helper()
	session, err := dialMCP(tb.Context(), url, version, token, options)
	must(tb, err)
	tb.Cleanup(func() { _ = session.Close() })
	return host{tb, session}
}

// call calls a tool and returns the text of its result.
func (h host) call(name string, arguments any) (text string, failed bool) {
	h.tb.Helper()
	result, err := h.CallTool(h.tb.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	must(h.tb, err)
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

// works calls a tool that has to succeed, and decodes its result if to is given.
func (h host) works(name string, arguments, to any) string {
	h.tb.Helper()
	text, failed := h.call(name, arguments)
	if failed {
		h.tb.Fatalf("%s: %s", name, text)
	}
	if to != nil {
		must(h.tb, json.Unmarshal([]byte(text), to))
	}
	return text
}

// The four verbs of the day through a host, by both generations of the protocol: what
// one face saves, the other finds, relations of memories included.
//
// Y21, Y22
func TestHostWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("from the file"), 0o600))
	p := MustRun(t, dir, "--mcp-addr", "127.0.0.1:0")
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) { hostWorks(t, p, version) })
	}
}

func hostWorks(t *testing.T, p *process, version string) {
	h := MustHost(t, p.mcpURL(t)+"?session=s"+version+"&agent=a", version, "", nil)
	if got := h.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("speaks %s", got)
	}
	var saved struct{ ID string }
	h.works("memory_save", object{"text": "Bitcoin closed at 45,000 in " + version, "key": version, "tags": []string{"market"}, "origin": "web"}, &saved)
	if hits(t, p, version) == 0 {
		t.Error("gRPC does not find what the host saved")
	}
	var found struct {
		Hits []struct{ ID, Text, Origin string }
	}
	h.works("memory_query", object{"query": "bitcoin " + version, "filter": `tags:"market"`, "limit": 1}, &found)
	if len(found.Hits) != 1 || found.Hits[0].ID != saved.ID || found.Hits[0].Origin != "web" {
		t.Errorf("found %+v", found)
	}
	if text, failed := h.call("memory_get", object{"key": version}); failed || !strings.Contains(text, saved.ID) {
		t.Errorf("by its key: %s", text)
	}
	if text, failed := h.call("tool_run", object{"name": "fs:read_file", "arguments": object{"path": "a.txt"}}); failed || !strings.Contains(text, "from the file") {
		t.Errorf("the tool gave %s", text)
	}
	h.works("event_emit", object{"topic": "build.done", "payload": object{"ok": version}}, nil)
	if text := h.works("event_read", object{"topic": "build.done"}, nil); !strings.Contains(text, version) {
		t.Errorf("events: %s", text)
	}
	relationsWork(t, p, h, saved.ID)
	blobsWork(t, h)
	if text := h.works("memory_forget", object{"id": saved.ID}, nil); !strings.Contains(text, saved.ID) {
		t.Errorf("forgotten: %s", text)
	}
	if text, failed := h.call("memory_get", object{"id": saved.ID}); !failed || !strings.HasPrefix(text, "RECORD_NOT_FOUND: ") {
		t.Errorf("what is forgotten: %s", text)
	}
}

// relationsWork relates a record to others, looks from both ends, has a query bring what is
// related, and ends it again.
func relationsWork(t *testing.T, p *process, h host, id string) {
	t.Helper()
	var desk, maker struct{ ID string }
	h.works("memory_save", object{"text": "The trading desk is in Zug", "key": "desk"}, &desk)
	h.works("memory_save", object{"text": "Olga draws charts", "key": "maker"}, &maker)
	for _, want := range []string{"Related.", "They were related so before."} {
		if text := h.works("memory_relate", object{"from_id": id, "name": "told_by", "to_id": desk.ID}, nil); text != want {
			t.Errorf("relating: %s, want %s", text, want)
		}
	}
	h.works("memory_relate", object{"from_id": maker.ID, "name": "works_on", "to_id": id}, nil)
	listed, err := p.memory().ListRelations(t.Context(), &loombridgev1.ListRelationsRequest{AgentId: "a", Name: &loombridgev1.ListRelationsRequest_Id{Id: id}})
	must(t, err)
	if len(listed.GetRelations()) != 2 {
		t.Errorf("gRPC lists %v", listed.GetRelations())
	}
	mustList := func(ask object, want string) {
		t.Helper()
		if text := h.works("memory_relations", ask, nil); text != want {
			t.Errorf("%v has the relations %s, want %s", ask, text, want)
		}
	}
	out, in := `"out":[{"name":"told_by","id":"`+desk.ID+`"}]`, `"in":[{"name":"works_on","id":"`+maker.ID+`"}]`
	mustList(object{"id": id}, `{"id":"`+id+`",`+out+`,`+in+`}`)
	mustList(object{"id": id, "direction": "in"}, `{"id":"`+id+`",`+in+`}`)
	mustList(object{"id": id, "direction": "out"}, `{"id":"`+id+`",`+out+`}`)
	mustList(object{"id": id, "names": []string{"told_by"}}, `{"id":"`+id+`",`+out+`}`)
	mustList(object{"key": "desk"}, `{"id":"`+desk.ID+`","in":[{"name":"told_by","id":"`+id+`"}]}`)

	type hit struct {
		ID      string
		Score   *float64
		Through *struct {
			Name           string
			From           string `json:"from_id"`
			To             string `json:"to_id"`
			ReplacedRecord string `json:"replaced_id"`
		}
	}
	query := func(related bool) (hits []hit) {
		t.Helper()
		var found struct{ Hits []hit }
		h.works("memory_query", object{"query": "bitcoin closed", "filter": `id = "` + id + `" OR key = "desk" OR key = "maker"`, "limit": 1, "related": related}, &found)
		return found.Hits
	}
	if hits := query(false); len(hits) != 1 || hits[0].Through != nil {
		t.Errorf("a query that does not ask brings %+v", hits)
	}
	hits := query(true)
	if len(hits) != 3 || hits[0].ID != id || hits[0].Score == nil || hits[0].Through != nil {
		t.Fatalf("with what is related: %+v", hits)
	}
	if one := hits[1]; one.ID != desk.ID || one.Score != nil || one.Through == nil || one.Through.Name != "told_by" || one.Through.From != id || one.Through.To != "" {
		t.Errorf("along a relation: %+v", one)
	}
	if one := hits[2]; one.ID != maker.ID || one.Score != nil || one.Through == nil || one.Through.Name != "works_on" || one.Through.To != id || one.Through.From != "" {
		t.Errorf("against a relation: %+v", one)
	}
	var moved struct{ ID string }
	h.works("memory_save", object{"text": "The trading desk is in Bern", "supersedes": desk.ID, "key": "desk"}, &moved)
	if hits := query(true); len(hits) != 3 || hits[1].ID != moved.ID || hits[1].Through == nil || hits[1].Through.ReplacedRecord != desk.ID {
		t.Errorf("what has replaced the other end: %+v", hits)
	}
	for _, want := range []string{"Ended.", "There was no such relation."} {
		if text := h.works("memory_unrelate", object{"from_id": id, "name": "told_by", "to_id": desk.ID}, nil); text != want {
			t.Errorf("ending: %s, want %s", text, want)
		}
	}
	mustList(object{"id": id}, `{"id":"`+id+`",`+in+`}`)
	// The desk that was replaced is there again once its successor is gone.
	for _, gone := range []string{moved.ID, desk.ID, maker.ID} {
		h.works("memory_forget", object{"id": gone}, nil)
	}
	mustList(object{"id": id}, `{"id":"`+id+`"}`)
	if text, failed := h.call("memory_relate", object{"from_id": id, "name": "told_by", "to_id": maker.ID}); !failed || !strings.HasPrefix(text, "RECORD_NOT_FOUND: ") {
		t.Errorf("to what is forgotten: %s", text)
	}
}

// blobsWork records a long step and reads it back as a tool, as a resource and as part
// of a hand-over.
func blobsWork(t *testing.T, h host) {
	long := strings.Repeat("täglich ", 4000)
	var step struct{ Step, Observation, Blob string }
	h.works("step_record", object{"tool": "bash", "arguments": object{"command": "cat"}, "result": long}, &step)
	if step.Blob == "" || len(step.Observation) > 500 || !strings.Contains(step.Observation, "\nUse blob_read to retrieve") {
		t.Errorf("recorded as %+v", step)
	}
	var whole strings.Builder
	for next := int64(0); ; {
		var part struct {
			Text       string
			Size, Next int64
		}
		h.works("blob_read", object{"name": step.Step, "offset": next, "limit": 9999}, &part)
		whole.WriteString(part.Text)
		if next = part.Next; next == 0 {
			break
		}
	}
	if whole.String() != long {
		t.Errorf("%d bytes came back of %d", whole.Len(), len(long))
	}
	for find, want := range map[string]string{
		`"find":"täglich"`: `{"lines":[{"line":1,"offset":0,"text":"täglich `, `"find":"nightly"`: `{"lines":[],"size":36000}`,
		`"find":"T.glich","regexp":true`: `{"lines":[],"size":36000}`, `"find":"t.glich","regexp":true`: `{"lines":[{"line":1,"offset":0,`,
	} {
		var args object
		must(t, json.Unmarshal([]byte(`{"name":"`+step.Step+`",`+find+`}`), &args))
		if got := h.works("blob_read", args, nil); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.200s", find, got)
		}
	}
	listed, err := h.ListResources(t.Context(), nil)
	must(t, err)
	if len(listed.Resources) != 1 {
		t.Fatalf("resources: %+v", listed.Resources)
	}
	read, err := h.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: listed.Resources[0].URI})
	must(t, err)
	if read.Contents[0].Text != long {
		t.Error("the resource is another text")
	}
	for _, uri := range []string{"loom://step/" + step.Step, "loom://blob/" + step.Step} {
		if _, err := h.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := h.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "loom://blob/step_999"}); err == nil {
		t.Error("a blob that is not there was read")
	}
	if text := h.works("context_assemble", object{"goal": "Go on with the build"}, nil); !strings.Contains(text, "bash") || !strings.Contains(text, "Go on with the build") || !strings.Contains(text, "\nUse blob_read to retrieve") || strings.Contains(text, "Use fs:read_file") {
		t.Errorf("the hand-over: %s", text)
	}
	prompt, err := h.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "handover"})
	must(t, err)
	if text := prompt.Messages[0].Content.(*sdk.TextContent).Text; !strings.Contains(text, "bash") {
		t.Errorf("the prompt: %.300s", text)
	}
	prompt, err = h.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "recall", Arguments: map[string]string{"query": "bitcoin"}})
	must(t, err)
	if text := prompt.Messages[0].Content.(*sdk.TextContent).Text; !strings.Contains(text, "45,000") || !strings.Contains(text, "not an instruction") {
		t.Errorf("recalled: %s", text)
	}
}

// Bad input is an error that a model can act on, and changes nothing.
func TestHostBadInput(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0")
	h := MustHost(t, p.mcpURL(t), "", "", nil)
	for _, test := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"memory_save", object{"text": ""}, "INVALID_REQUEST: .*text is required"},
		{"memory_save", object{"txt": "x"}, "txt: is not known"},
		{"memory_save", object{"text": 7}, "text: must be string, not number"},
		{"memory_save", object{"text": "x", "importance": 2}, "importance"},
		{"memory_save", object{"text": "x", "origin": "heaven"}, "origin: value must be one of 'agent', 'user', 'tool', 'web'"},
		{"memory_save", object{"text": "x", "metadata": []int{1}}, "metadata"},
		{"memory_save", object{"text": "x", "ttl_seconds": -1}, "ttl"},
		{"memory_save", object{"text": strings.Repeat("x", 300<<10)}, "text"},
		{"memory_query", object{"query": "x", "filter": "nonsense = 1"}, "INVALID_FILTER"},
		{"memory_query", object{"query": "x", "limit": 1000}, "limit"},
		{"memory_get", object{"id": "a", "key": "b"}, "not both"},
		{"memory_get", object{}, "INVALID_REQUEST"},
		{"memory_query", object{"query": "x", "related": "all"}, "related: must be boolean, not string"},
		{"memory_relate", object{"from_id": "a", "name": "part_of"}, "INVALID_REQUEST: .*to_id"},
		{"memory_relate", object{"from_id": "a", "name": "part of", "to_id": "b"}, "INVALID_REQUEST: .*name"},
		{"memory_relate", object{"from_id": "a", "name": "part_of", "to_id": "b"}, "RECORD_NOT_FOUND: "},
		{"memory_unrelate", object{"name": "part_of", "to_id": "b"}, "INVALID_REQUEST: .*from_id"},
		{"memory_relations", object{"id": "a", "direction": "up"}, "direction: value must be one of 'out', 'in'"},
		{"memory_relations", object{"id": "a", "key": "b"}, "not both"},
		{"memory_relations", object{"id": "a", "names": slices.Repeat([]string{"x"}, 17)}, "names"},
		{"memory_relations", object{"id": "a"}, "RECORD_NOT_FOUND: "},
		{"memory_relations", object{}, "INVALID_REQUEST"},
		{"blob_read", object{"name": "step_001", "limit": 2 << 20}, "limit"},
		{"blob_read", object{"name": "step_001", "find": "x", "limit": 2}, "find"},
		{"blob_read", object{"name": "step_001", "find": "(", "regexp": true}, "regexp"},
		{"blob_read", object{"name": "../../etc/passwd"}, "NOT_FOUND|INVALID"},
		{"event_emit", object{"topic": "agent.status"}, "RESERVED_TOPIC"},
		{"event_read", object{"topic": "x", "wait_seconds": 1e300}, "wait_seconds"},
		{"event_read", object{"topic": "x", "limit": -1}, "limit"},
		{"tool_run", object{"name": "no:such"}, "no:such"},
		{"tool_run", object{"name": "fs:read_file", "arguments": object{"path": "../x"}}, "PERMISSION_DENIED: "},
		{"tool_run", object{"name": "fs:read_file", "arguments": object{"path": 7}}, "path"},
		{"tool_run", object{"name": "fs:read_file", "timeout_seconds": 1e9}, "timeout"},
	} {
		text, failed := h.call(test.tool, test.arguments)
		if matched, _ := regexp.MatchString("(?s)"+test.want, text); !failed || !matched {
			t.Errorf("%s %.80v: %.200s, want %s", test.tool, test.arguments, text, test.want)
		}
	}
	if n := hits(t, p, "x"); n != 0 {
		t.Errorf("%d records were saved", n)
	}
	if _, err := h.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such"}); err == nil {
		t.Error("a tool that is not there was called")
	}
}

// Credentials hold as on the gRPC face: nobody gets in without one, nobody acts for
// agents of others, and what a host does is on record.
func TestHostCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "callers.toml")
	must(t, os.WriteFile(file, []byte(credentialOf("one", `["anna"]`, "")+credentialOf("two", `["team-*"]`, "")), 0o600))
	p := MustRun(t, dir, "--mcp-addr", "127.0.0.1:0", "--credentials", file)
	url := p.mcpURL(t)
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for _, token := range []string{"", "wrong"} {
			if _, err := dialMCP(t.Context(), url, version, token, nil); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
				t.Errorf("%s with token %q: %v", version, token, err)
			}
		}
		anna := MustHost(t, url, version, "one", nil)
		anna.works("memory_save", object{"text": "only for anna " + version}, nil)
		got, err := p.bridge().MemoryQuery(as(t.Context(), "one"), &loombridgev1.MemoryQueryRequest{AgentId: "anna", Query: version})
		must(t, err)
		if len(got.GetHits()) == 0 {
			t.Error("the host does not act for the agent of its credential")
		}
		if text, failed := MustHost(t, url+"?agent=anna", version, "two", nil).call("memory_query", object{"query": "anna"}); !failed || !strings.HasPrefix(text, "AGENT_NOT_OWNED: ") {
			t.Errorf("another's memory: %s", text)
		}
		MustHost(t, url+"?agent=team-1", version, "two", nil).works("tool_run", object{"name": "fs:list_dir", "arguments": object{"path": "."}}, nil)
	}
	calls, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(as(t.Context(), "two"), &loombridgev1.ListAuditRequest{AgentId: "team-1"})
	must(t, err)
	if len(calls.GetRecords()) != 2 || calls.GetRecords()[0].GetTool() != "fs:list_dir" {
		t.Errorf("audit: %v", calls.GetRecords())
	}
}

// A session of an older protocol belongs to the credential that opened it.
func TestHostSessionIsOwned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "callers.toml")
	must(t, os.WriteFile(file, []byte(credentialOf("one", `["*"]`, "")+credentialOf("two", `["*"]`, "")), 0o600))
	p := MustRun(t, dir, "--mcp-addr", "127.0.0.1:0", "--credentials", file)
	h := MustHost(t, p.mcpURL(t), "2025-11-25", "one", nil)
	ask := func(token string) int {
		request := post(t, p.mcpURL(t), `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		request.Header.Set("Mcp-Session-Id", h.ID())
		request.Header.Set("Authorization", "Bearer "+token)
		return statusOf(t, request)
	}
	if own, other := ask("one"), ask("two"); own != http.StatusOK || other != http.StatusForbidden {
		t.Errorf("the owner gets %d, somebody else %d", own, other)
	}
}

// post is a request as a host sends it.
func post(tb testing.TB, url, body string) *http.Request {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader(body))
	must(tb, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	return request
}

func statusOf(tb testing.TB, request *http.Request) int {
	tb.Helper()
	answer, err := http.DefaultClient.Do(request)
	must(tb, err)
	must(tb, answer.Body.Close())
	return answer.StatusCode
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// A page in a browser, and a name that somebody made lead to this machine, reach
// nothing; messages beyond the limit are not read.
func TestHostIsGuarded(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0", "--mcp-hosts", "loom.example", "--max-receive-bytes", "100KiB")
	url := p.mcpURL(t)
	port := url[strings.LastIndex(url, ":"):strings.LastIndex(url, "/")]
	for _, test := range []struct {
		host, origin string
		body         int
		want         int
	}{
		{"", "", 0, http.StatusOK},
		{"localhost" + port, "http://localhost:3000", 0, http.StatusOK},
		{"[::1]" + port, "", 0, http.StatusOK},
		{"loom.example", "https://loom.example", 0, http.StatusOK},
		{"evil.example", "", 0, http.StatusForbidden},
		{"localhost.evil.example", "", 0, http.StatusForbidden},
		{"", "http://evil.example", 0, http.StatusForbidden},
		{"", "http://6.6.6.6", 0, http.StatusForbidden},
		{"", "null", 0, http.StatusForbidden},
		{"", "", 200 << 10, http.StatusRequestEntityTooLarge},
	} {
		request := post(t, url, initializeBody+strings.Repeat(" ", test.body))
		request.Host = test.host
		if test.origin != "" {
			request.Header.Set("Origin", test.origin)
		}
		if got := statusOf(t, request); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
	chunked := post(t, url, initializeBody+strings.Repeat(" ", 200<<10))
	chunked.ContentLength = -1
	if got := statusOf(t, chunked); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a long message of unknown length: %d", got)
	}
	if err := runBriefly(t, "--addr=127.0.0.1:0", "--mcp-addr=0.0.0.0:0", "--data-dir="+t.TempDir(), "--workspace="+t.TempDir()); err == nil || !strings.Contains(err.Error(), "--mcp-addr") {
		t.Errorf("open to all: %v", err)
	}
}

// waiting attaches an agent with a tool that answers when it is told to, and says when it
// was called.
func waiting(tb testing.TB, p *process) (called, answer chan struct{}) {
	tb.Helper()
	stream, err := p.bridge().Attach(tb.Context())
	must(tb, err)
	must(tb, stream.Send(helloOf("worker", &loombridgev1.ToolDescriptor{Name: "my:wait"})))
	_, err = stream.Recv()
	must(tb, err)
	called, answer = make(chan struct{}, 1), make(chan struct{}, 1)
	go func() {
		for {
			m, err := stream.Recv()
			switch {
			case err != nil:
				return
			case m.GetToolCall() != nil:
				called <- struct{}{}
				go func() {
					<-answer
					_ = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
						CallId: m.GetToolCall().GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `"done"`},
					}}})
				}()
			}
		}
	}()
	return called, answer
}

// A host that asks for it sees that a long call goes on, and one that gives a call up
// ends it where it runs.
func TestHostProgressAndCancel(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0")
	called, answer := waiting(t, p)
	over := 0 // calls given up
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			told := make(chan *sdk.ProgressNotificationParams, 100)
			h := MustHost(t, p.mcpURL(t), version, "", &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params },
			})
			params := &sdk.CallToolParams{Name: "tool_run", Arguments: object{"name": "my:wait", "timeout_seconds": 60}}
			params.SetProgressToken("token")
			ended := make(chan error, 1)
			go func() {
				result, err := h.CallTool(t.Context(), params)
				if err == nil && result.Content[0].(*sdk.TextContent).Text != "done" {
					err = fmt.Errorf("the tool gave %v", result.Content[0])
				}
				ended <- err
			}()
			<-called
			if first := <-told; first.ProgressToken != "token" || first.Total != 60 {
				t.Errorf("told %+v", first)
			}
			answer <- struct{}{}
			must(t, <-ended)

			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, err := h.CallTool(ctx, &sdk.CallToolParams{Name: "tool_run", Arguments: object{"name": "my:wait", "timeout_seconds": 60}})
				ended <- err
			}()
			<-called
			cancel()
			if err := <-ended; err == nil {
				t.Error("a call that was given up succeeded")
			}
			over++
			eventually(t, waitTime, func() error {
				calls, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "mcp"})
				must(t, err)
				unfinished := slices.DeleteFunc(calls.GetRecords(), func(r *loombridgev1.AuditRecord) bool {
					return r.GetOutcome() == loombridgev1.AuditOutcome_AUDIT_OUTCOME_OK
				})
				if len(unfinished) != over {
					return fmt.Errorf("%d of %d calls ended where they ran", len(unfinished), over)
				}
				return nil
			})
			answer <- struct{}{}
		})
	}
}

// A stop does not wait for hosts that listen, and lets calls in flight finish.
func TestHostDrain(t *testing.T) {
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0")
	MustHost(t, p.mcpURL(t), "2025-11-25", "", nil) // its stream stays open
	MustHost(t, p.mcpURL(t), "2026-07-28", "", nil)
	began := time.Now()
	must(t, p.Stop())
	if took := time.Since(began); took > stopLimit {
		t.Errorf("the stop took %v", took)
	}
}

// With a certificate the protocol is served over HTTPS.
func TestHostTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := MustCertificate(t, dir, "server")
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0", "--tls-cert", filepath.Join(dir, "server.pem"), "--tls-key", filepath.Join(dir, "server.key"))
	url := strings.Replace(p.mcpURL(t), "127.0.0.1", "localhost", 1)
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
	}, nil)
	must(t, err)
	defer func() { _ = session.Close() }()
	host{t, session}.works("memory_save", object{"text": "x"}, nil)
}
