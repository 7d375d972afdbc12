package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeSite is a search engine, a weather service, a model and pages. It is strict about what
// it is asked, and answers in TLS on another port, too.
type fakeSite struct {
	*httptest.Server
	secure *httptest.Server
	cert   string // file with the certificate of secure

	mu    sync.Mutex
	asked []asked // guarded by mu
}

// asked is one request.
type asked struct {
	method, path, query string
	header              http.Header
	body                map[string]any
}

// MustSite starts a site that ends with the test.
func MustSite(tb testing.TB) *fakeSite {
	tb.Helper()
	f := &fakeSite{}
	f.Server = httptest.NewServer(f)
	f.secure = httptest.NewTLSServer(f)
	tb.Cleanup(f.Close)
	tb.Cleanup(f.secure.Close)
	f.cert = filepath.Join(tb.TempDir(), "site.pem")
	must(tb, os.WriteFile(f.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.secure.Certificate().Raw}), 0o600))
	return f
}

func (f *fakeSite) host() string { return strings.TrimPrefix(f.URL, "http://") }

// last is the last request.
func (f *fakeSite) last() asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return asked{header: http.Header{}}
	}
	return f.asked[len(f.asked)-1]
}

// ServeHTTP answers.
func (f *fakeSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := asked{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, header: r.Header.Clone()}
	_ = json.NewDecoder(r.Body).Decode(&a.body) // most have none
	f.mu.Lock()
	f.asked = append(f.asked, a)
	f.mu.Unlock()
	answer := func(status int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}
	q := r.URL.Query()
	result := func(engine string) map[string]any {
		return map[string]any{"title": engine + " <b>about</b> " + q.Get("q"), "url": "https://result.example/" + engine, "link": "https://result.example/" + engine}
	}
	switch {
	case r.URL.Host != "": // it is asked as a proxy
		answer(http.StatusOK, map[string]any{"web": map[string]any{"results": []any{result("proxied")}}})
	case r.URL.Path == "/brave" && r.Header.Get("X-Subscription-Token") == "" && r.Header.Get("X-Key") == "":
		answer(http.StatusUnprocessableEntity, map[string]any{"error": "no token"})
	case r.URL.Path == "/brave":
		one := result("brave")
		one["description"] = "a &amp; b"
		answer(http.StatusOK, map[string]any{"web": map[string]any{"results": []any{one, result("second")}}})
	case r.URL.Path == "/search" && q.Get("format") == "json":
		one := result("searxng")
		one["content"] = "from many"
		answer(http.StatusOK, map[string]any{"results": []any{one}})
	case r.URL.Path == "/any":
		answer(http.StatusOK, map[string]any{"items": []any{result("template")}})
	case r.URL.Path == "/geo" && q.Get("name") == "Tôkyō & more":
		answer(http.StatusOK, map[string]any{"results": []any{map[string]any{"name": "Tokyo", "country": "Japan", "latitude": 35.5, "longitude": 139.25}}})
	case r.URL.Path == "/geo":
		answer(http.StatusOK, map[string]any{"generationtime_ms": 0.1})
	case r.URL.Path == "/forecast" && q.Get("latitude") == "35.5" && q.Get("longitude") == "139.25":
		answer(http.StatusOK, map[string]any{"current": map[string]any{"temperature_2m": 21.5, "relative_humidity_2m": 60, "weather_code": 61, "wind_speed_10m": 7.2}})
	case r.URL.Path == "/v1/responses" && a.body["model"] != "chat-only":
		answer(http.StatusOK, map[string]any{"model": a.body["model"], "output": []any{map[string]any{"content": []any{map[string]any{"text": "said"}}}}, "usage": map[string]any{"input_tokens": 3}})
	case r.URL.Path == "/v1/chat/completions":
		answer(http.StatusOK, map[string]any{"model": a.body["model"], "choices": []any{map[string]any{"message": map[string]any{"content": "chatted"}}}})
	case r.URL.Path == "/long":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(strings.Repeat("x", 9<<20)))
	case r.URL.Path == "/slow":
		select {
		case <-r.Context().Done():
		case <-time.After(waitTime):
		}
	case r.URL.Path == "/page":
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		_, _ = w.Write([]byte("<html><head><title>A  page</title><script>no()</script></head><body><nav>menu</nav><main><h1>Caf\xe9</h1><p>Some <b>text</b> and <a href='/next#x'>a link</a>.</p><ul><li>one</li><li>two</li></ul></main></body></html>"))
	case r.URL.Path == "/bytes":
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte(strings.Repeat("\xff\x00\x01", 100)))
	case r.URL.Path == "/plain":
		_, _ = w.Write([]byte("plain text"))
	case r.URL.Path == "/to":
		http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
	default:
		answer(http.StatusNotFound, map[string]any{"error": "nothing here"})
	}
}

// partOf is one of a tool's result, or why it failed.
func partOf(result, name string) string {
	var values map[string]any
	if json.Unmarshal([]byte(result), &values) != nil {
		return result
	}
	return fmt.Sprint(values[name])
}

// webEffects are those of the tools that ask on networks.
func webEffects() []effect {
	tool := func(name, args string, read func(result string) string) func(s *stand) func() string {
		return func(s *stand) func() string {
			result := s.tool(name, strings.NewReplacer("$WEB", s.site.URL, "$HOST", s.site.host(), "$SECURE", s.site.secure.URL).Replace(args))
			return once(read(result))
		}
	}
	is := func(name string) func(result string) string {
		return func(result string) string { return partOf(result, name) }
	}
	sent := func(name, args string, read func(a asked) string) func(s *stand) func() string {
		return func(s *stand) func() string {
			s.tool(name, args)
			return once(read(s.site.last()))
		}
	}
	has := func(text string) func(result string) string {
		return func(result string) string { return fmt.Sprint(strings.Contains(result, text)) }
	}
	brave := []string{"--search-url", "$WEB/brave", "--search-key", "k"}
	model := []string{"--llm-url", "$WEB/v1"}
	here := []string{"--web-hosts", "site.test=$HOST"}
	query, ask := `{"query":"x"}`, `{"input":"hello"}`
	const failed = "TOOL_ERROR_CODE_FAILED"
	return []effect{
		{setting: "web-hosts", args: here, see: tool("web:fetch", `{"url":"http://site.test/page"}`, is("title")), with: "A page", without: failed},
		{setting: "search-engine", args: []string{"--search-engine", "searxng"}, both: []string{"--search-url", "$WEB"}, see: tool("web:search", query, has("searxng about x")), with: "true", without: "false"},
		{setting: "search-url", args: []string{"--search-url", "$WEB"}, both: []string{"--search-engine", "searxng"}, see: sent("web:search", query, func(a asked) string { return a.path }), with: "/search", without: notStarted},
		{setting: "search-key", args: []string{"--search-key", "secret"}, both: brave[:2], see: sent("web:search", query, func(a asked) string { return a.header.Get("X-Subscription-Token") }), with: "secret", without: ""},
		{setting: "llm-url", args: model, see: tool("llm:generate", ask, is("text")), with: "said", without: failed},
		{setting: "llm-model", args: []string{"--llm-model", "chat-only"}, both: model, see: tool("llm:generate", ask, is("provider")), with: "chat.completions", without: "responses"},
		{setting: "llm-key", args: []string{"--llm-key", "k"}, both: model, see: sent("llm:generate", ask, func(a asked) string { return a.header.Get("Authorization") }), with: "Bearer k", without: ""},
		{setting: "egress-ca", args: []string{"--egress-ca", "$CERT"}, both: []string{"--web-hosts", "example.com=$SECURE"}, see: tool("web:fetch", `{"url":"https://example.com/page"}`, is("title")), with: "A page", without: failed},
	}
}
