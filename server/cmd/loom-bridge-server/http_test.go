package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

var httpAddress = regexp.MustCompile(`(?m)^  http +(https?://\S+)$`)

// httpURL is where the server says that it serves HTTP.
func (p *process) httpURL(tb testing.TB) string {
	tb.Helper()
	var found []string
	eventually(tb, waitTime, func() error {
		if found = httpAddress.FindStringSubmatch(p.Log.String()); found == nil {
			return errors.New("the log does not say where HTTP is served")
		}
		return nil
	})
	return found[1]
}

// exchange is a request, and what is wanted of the answer.
type exchange struct {
	method, path, body string
	headers            []string // "Name: value"
	want               int
	holds              string // in the answer
}

func (a exchange) request(tb testing.TB, base string) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), a.method, base+a.path, strings.NewReader(a.body))
	must(tb, err)
	if a.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range a.headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	return r
}

// check asks, and returns the answer.
func (a exchange) check(tb testing.TB, base string) string {
	tb.Helper()
	answer, err := http.DefaultTransport.RoundTrip(a.request(tb, base))
	must(tb, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(tb, err)
	// The library puts spaces at random.
	squeezed := strings.NewReplacer(`": `, `":`, `, "`, `,"`).Replace(string(text))
	if answer.StatusCode != a.want || !strings.Contains(squeezed, a.holds) {
		tb.Errorf("%s %s %q %v: %d %.600s; want %d with %s", a.method, a.path, a.body, a.headers, answer.StatusCode, text, a.want, a.holds)
	}
	return squeezed
}

// The server over HTTP, as somebody with curl uses it: what was saved is found and read by an
// id with everything that separates the parts of a path, a tool runs, and refusals say why.
//
// N12, N13
func TestREST(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--http-addr", "127.0.0.1:0", "--max-receive-bytes", "100KiB")
	base := p.httpURL(t)
	const me = "Loom-Agent-Id: me"
	for _, a := range []exchange{
		{"GET", "/healthz", "", nil, 200, "ok"},
		{"GET", "/readyz", "", nil, 200, "ok"},
		{"GET", "/metrics", "", nil, 200, "loom_bridge_"},
		{"POST", "/v1/memories", `{"agent_id":"me","id":"a/b:c.d% é:query","text":"Bitcoin closed at 45,000"}`, nil, 200, `"outcome":"SAVE_OUTCOME_SAVED"`},
		{"GET", "/v1/memories/" + url.PathEscape("a/b:c.d% é:query"), "", []string{me}, 200, `"text":"Bitcoin closed at 45,000"`},
		{"GET", "/v1/memories/a%2Fb%3Ac%2Ed%25%20%C3%A9%3Aquery?agent_id=me", "", nil, 200, `"text":"Bitcoin closed at 45,000"`},
		{"POST", "/v1/memories:query", `{"agentId":"me","query":"bitcoin"}`, nil, 200, `"hits":[`},
		{"POST", "/v1/tools/fs:list_dir:call", `{"arguments":{"path":"."}}`, []string{me}, 200, `"success":true`},
		{"POST", "/v1/tools/fs:list_dir:call", `{"arguments":{"path":"."}}`, []string{me, "Loom-Json: text"}, 200, `"outputJson":`},
		{"GET", "/v1/sessions/default/steps?agent_id=me&page_size=1", "", nil, 200, `"step_001"`},
		{"GET", "/v1/sessions?agent_id=me", "", nil, 200, `"sessions":[`},
		{"GET", "/v1/memories:export?agent_id=me", "", nil, 200, `{"result":{"lines":[`},
		{"DELETE", "/v1/memories/a%2Fb:c.d%25%20%C3%A9%3Aquery?agent_id=me", "", nil, 200, `"deleted":"1"`},

		{"GET", "/v1/memories/none?agent_id=me", "", nil, 404, `"reason":"RECORD_NOT_FOUND"`},
		{"POST", "/v1/memories", `{}`, nil, 400, `{"field":"text","description":"is required"}`},
		{"POST", "/v1/memories", `{"agent_id":"me","text":" \n\t"}`, nil, 400, `{"field":"text","description":"has white space alone"}`},
		{"POST", "/v1/memories", `{"agent_id":"me","txt":"x"}`, nil, 400, `unknown field \"txt\"`},
		{"POST", "/v1/memories", `{"agent_id":`, nil, 400, `"field":"body"`},
		{"POST", "/v1/memories", `{"agent_id":"me","text":"` + "\xff" + `"}`, nil, 400, `invalid UTF-8`},
		{"POST", "/v1/memories?agent_id=me", `{"text":"x"}`, nil, 400, `"field":"agent_id"`},
		{"GET", "/v1/memories?agent_id=me&foo=1", "", nil, 400, `"field":"foo"`},
		{"GET", "/v1/memories?agent_id=me&page_size=x", "", nil, 400, `{"field":"page_size","description":"must be a number, whole and of 32 bits"}`},
		{"GET", "/v1/memories?agent_id=me&page_size=1&page_size=2", "", nil, 400, `{"field":"page_size","description":"stands there more than once"}`},
		{"GET", "/v1/audit?agent_id=me&outcome=good", "", nil, 400, `{"field":"outcome","description":"must be one of `},
		{"GET", "/v1/audit?agent_id=me&start_time=now", "", nil, 400, `{"field":"start_time","description":"must be a time such as `},
		{"GET", "/v1/memories?agent_id=%FF", "", nil, 400, `"field":"agent_id"`},
		{"GET", "/v1/memories/%FF?agent_id=me", "", nil, 400, `"field":"id"`},
		{"GET", "/v1/memories/?agent_id=me", "", nil, 400, `"field":"id"`},
		{"GET", "/v1/memories/x?agent_id=me&id=y", "", nil, 400, `"field":"id"`},
		{"GET", "/v1/memories?agent_id=me", `{}`, nil, 400, `"field":"body"`},
		{"GET", "/v1/memories:export", "", nil, 400, `"field":"agent_id"`},
		{"GET", "/v1/memories?agent_id=me", "", []string{"Grpc-Timeout: soon"}, 400, `"field":"Grpc-Timeout"`},
		{"GET", "/v1/sessions?agent_id=me", "", []string{"Loom-Session-Id: é"}, 400, `"field":"Loom-Session-Id"`},
		{"GET", "/v1/sessions?agent_id=me", "", []string{"Authorization: Bearer é"}, 400, `"field":"Authorization"`},
		{"PUT", "/v1/memories", "", nil, 405, `method is not served on this path: use POST or GET`},
		{"QUERY", "/v1/memories:query", "", nil, 405, `use POST`},
		{"GET", "/openapi.json", "", nil, 200, `"openapi":"3.1.0"`},
		{"GET", "/docs", "", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 200, `id="MemorySave"`},
		{"GET", "/docs/", "", nil, 302, `href="/docs/README.md"`},
		{"GET", "/docs/server/docs/running.md", "", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 200, `<h2 id="settings">`},
		{"GET", "/docs/go.mod", "", nil, 404, `"field":"path"`},
		{"GET", "/docs/style.css", "", nil, 200, "summary"},
		{"OPTIONS", "/v1/memories", "", nil, 405, `"field":"method"`},
		{"GET", "/", "", nil, 302, `href="/console/"`},
		{"GET", "/console/a/me/m?q=x", "", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 200, "/console/console.js"},
		{"GET", "/v1/nothing", "", nil, 404, `"field":"path"`},
		{"GET", "/nothing", "", nil, 404, `"field":"path"`},
		{"POST", "/v1/memories", `{}`, []string{"Content-Type: text/plain"}, 415, `"field":"Content-Type"`},
		{"POST", "/v1/memories", `{}`, []string{"Content-Encoding: gzip"}, 415, `"field":"Content-Encoding"`},
		{"POST", "/v1/memories", `{"agent_id":"me","text":"` + strings.Repeat("x", 100<<10) + `"}`, nil, 413, `"reason":"TOO_LARGE"`},
		{"POST", "/v1/memories", `{"agent_id":"me","text":"x","metadata":{"a":` + strings.Repeat("[", 40<<10) + `}}`, nil, 400, "nested deeper"},

		{"GET", "/v1/status", "", []string{"Host: evil.example"}, 403, `"field":"Host"`},
		{"GET", "/healthz", "", []string{"Host: 127.0.0.1.evil.example"}, 403, `"field":"Host"`},
		{"GET", "/v1/status", "", []string{"Host: localhost:1"}, 200, `"version":`},
		{"GET", "/v1/status", "", []string{"Origin: http://evil.example"}, 403, `"field":"Origin"`},
		{"GET", "/v1/status", "", []string{"Origin: http://localhost:3000"}, 403, `"field":"Origin"`},
		{"GET", "/v1/status", "", []string{"Origin: null"}, 403, `"field":"Origin"`},
		{"GET", "/v1/status", "", []string{"Origin: " + base}, 200, `"version":`},
		{"GET", "/v1/status", "", []string{"Sec-Fetch-Site: cross-site"}, 403, `"field":"Origin"`},
		{"GET", "/metrics", "", []string{"Sec-Fetch-Site: same-site"}, 403, `"field":"Origin"`},
		{"GET", "/v1/status", "", []string{"Sec-Fetch-Site: same-origin"}, 200, `"version":`},
	} {
		a.check(t, base)
	}
	chunked := exchange{method: "POST", path: "/v1/memories", body: `{"agent_id":"me","text":"` + strings.Repeat("x", 100<<10) + `"}`}.request(t, base)
	chunked.ContentLength = -1
	if got := statusOf(t, chunked); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body of unknown length: %d", got)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 8<<20))
	must(t, z.Close())
	if got := statusOf(t, exchange{method: "POST", path: "/v1/memories", body: bomb.String(), headers: []string{"Content-Encoding: gzip"}}.request(t, base)); got != http.StatusUnsupportedMediaType {
		t.Errorf("a packed body: %d", got)
	}
}

// The commands of the page give all that their calls need.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	base := MustRun(t, t.TempDir(), "--http-addr", "127.0.0.1:0").httpURL(t)
	page := html.UnescapeString(exchange{"GET", "/docs", "", nil, 200, "curl"}.check(t, base))
	commands := regexp.MustCompile(`curl -X (\w+) -H 'Loom-Agent-Id: me' 'http://127.0.0.1:50080([^']+)' -H 'Content-Type: application/json' -d '([^']+)'`).FindAllStringSubmatch(page, -1)
	if len(commands) < 30 {
		t.Fatalf("%d commands", len(commands))
	}
	for _, c := range commands {
		if strings.HasSuffix(c[2], ":subscribe") { // it answers without an end
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(c[2])
		answer, err := http.DefaultTransport.RoundTrip(exchange{method: c[1], path: path, body: c[3], headers: []string{"Loom-Agent-Id: me"}}.request(t, base))
		must(t, err)
		text, err := io.ReadAll(answer.Body)
		must(t, errors.Join(err, answer.Body.Close()))
		if answer.StatusCode == http.StatusBadRequest && strings.Contains(string(text), "required") {
			t.Errorf("%s %s %s: %s", c[1], path, c[3], text)
		}
	}
}

// Three million values of two bytes each do not become three million messages.
//
// N13
func TestRESTCountsBeforeItDecodes(t *testing.T) {
	t.Parallel()
	base := MustRun(t, t.TempDir(), "--http-addr", "127.0.0.1:0").httpURL(t)
	for _, body := range []string{
		`{"agent_id":"me","text":"x","metadata":{"a":[` + strings.Repeat("1,", 1_900_000) + `1]}}`,
		`{"agent_id":"me","text":"x","metadata":{"embedding":[` + strings.Repeat("1,", 1_900_000) + `1]}}`,
		`{"agent_id":"me","text":"x","tags":[` + strings.Repeat(`"",`, 1_300_000) + `""]}`,
		`{"agent_id":"me","text":"x","relations":[` + strings.Repeat(`{},`, 1_300_000) + `{}]}`,
	} {
		exchange{"POST", "/v1/memories", body, nil, 400, "items and JSON values in all"}.check(t, base)
	}
}

// sentEvent is what is read of a stream.
type sentEvent struct {
	id, name string
	data     struct {
		Ready *struct{} `json:"ready"`
		Event struct {
			Topic    string `json:"topic"`
			Sequence string `json:"sequence"`
			Payload  any    `json:"payload"`
		} `json:"event"`
		Position string `json:"position"`
		CaughtUp bool   `json:"caughtUp"`
		Saved    struct {
			ID string `json:"id"`
		} `json:"saved"`
	}
}

// serverSent reads server-sent events of a request.
func serverSent(tb testing.TB, base, path, last string) (next func() sentEvent, status int) {
	tb.Helper()
	r := exchange{method: "GET", path: path, headers: []string{"Accept: text/event-stream", "Last-Event-ID: " + last}}.request(tb, base)
	answer, err := http.DefaultTransport.RoundTrip(r)
	must(tb, err)
	tb.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	return func() (e sentEvent) {
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case field == "id":
				e.id = value
			case field == "event":
				e.name = value
			case field == "data":
				must(tb, json.Unmarshal([]byte(value), &e.data))
			case lines.Text() == "" && e.id+e.name != "":
				return e
			}
		}
		tb.Fatalf("the stream ended: %v", lines.Err())
		return e
	}, answer.StatusCode
}

// A subscription over HTTP goes on behind the last event that its reader has seen: for exact
// topics and for patterns, with none missing and none twice.
//
// N12
func TestRESTStreamResumes(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--http-addr", "127.0.0.1:0")
	base := p.httpURL(t)
	emit := func(topic, payload string) {
		t.Helper()
		exchange{"POST", "/v1/topics/" + topic + ":emit", `{"agent_id":"me","payload":"` + payload + `"}`, nil, 200, `"eventId"`}.check(t, base)
	}
	want := func(next func() sentEvent, payloads ...string) (id string) {
		t.Helper()
		for _, payload := range payloads {
			e := next()
			if e.data.Event.Payload != payload {
				t.Fatalf("an event is %+v, want %s", e, payload)
			}
			id = e.id
		}
		return id
	}
	path := "/v1/events:subscribe?agent_id=me&topics=" + url.QueryEscape(`{"topic":"one"}`) + "&topics=" + url.QueryEscape(`{"topic":"desk.*"}`)
	next, _ := serverSent(t, base, path, "")
	if e := next(); e.data.Ready == nil || e.id == "" {
		t.Fatalf("the first event is %+v", e)
	}
	emit("one", "1")
	want(next, "1")
	emit("desk.a", "2")
	want(next, "2")
	emit("one", "3")
	id := want(next, "3")
	emit("one", "4")
	emit("desk.a", "5")
	emit("desk.b", "6")
	again, _ := serverSent(t, base, path, id)
	seen := map[string]int{}
	for len(seen) < 3 {
		if e := again(); e.data.Ready == nil {
			seen[e.data.Event.Payload.(string)]++
		}
	}
	emit("desk.b", "7")
	want(again, "7")
	if seen["4"] != 1 || seen["5"] != 1 || seen["6"] != 1 {
		t.Errorf("resumed: %v", seen)
	}
	if _, status := serverSent(t, base, path, "nonsense"); status != http.StatusBadRequest {
		t.Errorf("an id of no stream: %d", status)
	}

	save := func(id string) {
		exchange{"POST", "/v1/memories", `{"agent_id":"me","text":"x","id":"` + id + `"}`, nil, 200, id}.check(t, base)
	}
	save("first")
	watch, _ := serverSent(t, base, "/v1/memories:watch?agent_id=me", "")
	e := watch()
	for !e.data.CaughtUp {
		e = watch()
	}
	save("second")
	rest, _ := serverSent(t, base, "/v1/memories:watch?agent_id=me", e.id)
	if got := rest().data.Saved.ID; got != "second" {
		t.Errorf("a watch goes on with %q", got)
	}
}

// Who may do what is the same over HTTP as over gRPC: a token is needed, tenants are apart, and
// the figures are for who runs the server.
//
// N13
func TestRESTCallers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--http-addr", "127.0.0.1:0", "--credentials", MustCallers(t, dir, "acme", "umbrella"))
	base := p.httpURL(t)
	acme, umbrella := "Authorization: Bearer "+"acme", "Authorization: Bearer "+"umbrella"
	save := `{"agent_id":"me","text":"x","id":"mine"}`
	for _, a := range []exchange{
		{"GET", "/healthz", "", nil, 200, "ok"},
		{"GET", "/v1/status", "", nil, 401, `"reason":"UNAUTHENTICATED"`},
		{"POST", "/v1/memories", save, nil, 401, `"reason":"UNAUTHENTICATED"`},
		{"POST", "/v1/memories", save, []string{"Authorization: Bearer wrong"}, 401, `"reason":"UNAUTHENTICATED"`},
		{"POST", "/mcp", "{}", nil, 401, ""},
		{"GET", "/metrics", "", nil, 401, ""},
		{"GET", "/metrics", "", []string{acme}, 403, ""},
		{"POST", "/v1/memories", save, []string{acme}, 200, `"id":"mine"`},
		{"GET", "/v1/memories/mine?agent_id=me", "", []string{acme}, 200, `"id":"mine"`},
		{"GET", "/v1/memories/mine?agent_id=me", "", []string{umbrella}, 404, `"reason":"RECORD_NOT_FOUND"`},
		{"GET", "/v1/backups", "", []string{acme}, 403, ""},
		{"GET", "/v1/memories:export?agent_id=me", "", []string{umbrella}, 200, ""},
	} {
		a.check(t, base)
	}
}

// A server goes without HTTP whose port is taken, unless it was told to serve there.
func TestTakenHTTPPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = taken.Close() }()
	dir := t.TempDir()
	err = runBriefly(t, "--addr=127.0.0.1:0", "--http-addr="+taken.Addr().String(), "--data-dir="+dir, "--workspace="+dir)
	if err == nil || !strings.Contains(err.Error(), "--http-addr") || !strings.Contains(err.Error(), "in use") {
		t.Errorf("told to serve there: %v", err)
	}
	if err := runBriefly(t, "--addr=127.0.0.1:0", "--http-addr=0.0.0.0:0", "--data-dir="+dir, "--workspace="+dir); err == nil || !strings.Contains(err.Error(), "--http-addr") {
		t.Errorf("open to all: %v", err)
	}
	// Nobody else in this test has the default; whoever has it, there is no error.
	defaults, err := net.Listen("tcp", defaultHTTPAddr)
	if err == nil {
		defer func() { _ = defaults.Close() }()
	}
	p := MustRun(t, t.TempDir(), "--http-addr", "")
	if _, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "me", Text: "x"}); err != nil {
		t.Error(err)
	}
	eventually(t, waitTime, func() error {
		log := p.Log.String()
		told := regexp.MustCompile(`WARN.*HTTP is not served.*--http-addr chooses another.*address=` + defaultHTTPAddr + "\n").MatchString(log)
		if !told || !strings.Contains(log, "http         off") || !strings.Contains(log, "mcp          off") || strings.Count(log, defaultHTTPAddr) != 1 {
			return errors.New("the log does not say that HTTP is not served: " + log)
		}
		return nil
	})
}

// A stop does not wait for streams over HTTP: they end, and say why.
func TestRESTDrain(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--http-addr", "127.0.0.1:0")
	next, _ := serverSent(t, p.httpURL(t), "/v1/events:subscribe?agent_id=me&topics="+url.QueryEscape(`{"topic":"one"}`), "")
	next()
	must(t, p.Stop())
	if e := next(); e.name != "error" {
		t.Errorf("the stream ends with %+v", e)
	}
}
