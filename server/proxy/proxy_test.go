package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/web"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// secretKey is a caller's, which stands nowhere but at the upstream.
const secretKey = "sk-caller-0123456789"

// stage is a proxy before an upstream.
type stage struct {
	base string // of the upstream's paths at the proxy
	log  *bytes.Buffer
}

// newStage serves an upstream named up by a proxy.
func newStage(tb testing.TB, opts Options, upstream http.HandlerFunc) *stage {
	tb.Helper()
	origin := httptest.NewServer(upstream)
	tb.Cleanup(origin.Close)
	return stageFor(tb, opts, origin.URL)
}

func stageFor(tb testing.TB, opts Options, origin string) *stage {
	tb.Helper()
	s := &stage{log: new(bytes.Buffer)}
	gate := egress.New(nil)
	var err error
	opts.Upstreams, err = Upstreams([]string{"up=" + origin})
	must(tb, err)
	opts.Gate = gate
	opts.Logger = slog.New(slog.NewTextHandler(&locked{to: s.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := New(opts)
	face := web.New(web.Options{Server: server.Options{Logger: opts.Logger}})
	face.Handle(Prefix, web.Programs, h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	ended := make(chan error, 1)
	go func() { ended <- face.Serve(listener) }()
	tb.Cleanup(func() {
		must(tb, face.Shutdown(context.Background()))
		must(tb, <-ended)
		must(tb, h.Close())
		must(tb, gate.Close())
	})
	s.base = "http://" + listener.Addr().String() + Prefix + "up"
	return s
}

type locked struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// ask posts a body with the caller's key.
func (s *stage) ask(tb testing.TB, ctx context.Context, path, body string, headers ...string) (*http.Response, error) {
	tb.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, strings.NewReader(body))
	must(tb, err)
	r.Header.Set("Authorization", "Bearer "+secretKey)
	r.Header.Set("X-Api-Key", secretKey)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// read reads a whole answer.
func read(tb testing.TB, answer *http.Response) string {
	tb.Helper()
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(tb, err)
	return string(text)
}

// What is sent arrives as it is, with the caller's key and without what is for the server; what
// comes back does, too, but for what would speak for the server's own address.
func TestForwarded(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r, string(text)
		w.Header().Set("X-Request-Id", "req_1")
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Security-Policy", "none of it")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error": {"type":"rate_limit"}}`)
	})
	const sent = "{\"model\" : \"m\",\n\"x\":1.0, \"messages\":[]}"
	answer, err := s.ask(t, t.Context(), "/v1/files/a%2Fb?limit=1&x=%20", sent, "Loom-Agent-Id: me", "Loom-Authorization: Bearer bridge", "Anthropic-Version: 2023-06-01")
	must(t, err)
	if text := read(t, answer); answer.StatusCode != http.StatusTooManyRequests || text != `{"error": {"type":"rate_limit"}}` {
		t.Errorf("answered %d %q", answer.StatusCode, text)
	}
	for name, want := range map[string]string{
		"X-Request-Id": "req_1", "Retry-After": "7", "Set-Cookie": "", "Access-Control-Allow-Origin": "",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if value := answer.Header.Get(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	if body != sent || got.RequestURI != "/v1/files/a%2Fb?limit=1&x=%20" || got.Method != http.MethodPost {
		t.Errorf("the upstream got %s %s %q", got.Method, got.RequestURI, body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + secretKey, "X-Api-Key": secretKey, "Anthropic-Version": "2023-06-01", "Loom-Agent-Id": "", "Loom-Authorization": "",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s is %q at the upstream, want %q", name, value, want)
		}
	}
	if strings.Contains(s.log.String(), secretKey) {
		t.Errorf("the log has the key: %s", s.log)
	}
}

// Each part of a stream is passed on when it comes, as it is.
func TestStreamed(t *testing.T) {
	t.Parallel()
	parts := []string{"data: 1\n\n", ": ping\r\n\r\n", "event: x\ndata: \xff\x00\n", "\n", "data: " + strings.Repeat("y", 10<<20) + "\n\n", "data: [DONE]\n\n"}
	next := make(chan struct{})
	s := newStage(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_ = http.NewResponseController(w).Flush()
		for _, part := range parts {
			<-next
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	})
	answer, err := s.ask(t, t.Context(), "/v1/chat/completions", "{}")
	must(t, err) // the header is there before anything of the body
	defer func() { _ = answer.Body.Close() }()
	for _, part := range parts {
		next <- struct{}{}
		got := make([]byte, len(part))
		if _, err := io.ReadFull(answer.Body, got); err != nil || string(got) != part {
			t.Fatalf("read %.60q, %v; want %.60q", got, err, part)
		}
	}
	if rest, err := io.ReadAll(answer.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v at the end", rest, err)
	}
}

// Upstreams that fail: the program learns it, with no key in it, and nothing is sent twice.
//
// N14
func TestUpstreamFails(t *testing.T) {
	t.Parallel()
	var asked, elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	hijack := func(w http.ResponseWriter, text string) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
	s := newStage(t, Options{Silence: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/hang":
			<-r.Context().Done()
		case "/close":
			hijack(w, "")
		case "/garbage":
			hijack(w, "\x00\x01 no HTTP\r\n\r\n")
		case "/redirect":
			http.Redirect(w, r, other.URL+"/v1", http.StatusTemporaryRedirect)
		case "/switch":
			hijack(w, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		}
	})
	for path, want := range map[string]int{
		"/hang": http.StatusGatewayTimeout, "/close": http.StatusServiceUnavailable, "/garbage": http.StatusServiceUnavailable,
		"/redirect": http.StatusServiceUnavailable, "/switch": http.StatusServiceUnavailable,
	} {
		asked.Store(0)
		answer, err := s.ask(t, t.Context(), path, "{}", "Idempotency-Key: one")
		must(t, err)
		text := read(t, answer)
		if answer.StatusCode != want || answer.Header.Get("X-Should-Retry") != "false" || strings.Contains(text, secretKey) || !strings.Contains(text, "the upstream up") {
			t.Errorf("%s: %d %v %s; want %d", path, answer.StatusCode, answer.Header, text, want)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%s was sent %d times", path, n)
		}
	}
	if elsewhere.Load() > 0 {
		t.Error("a redirect was followed")
	}
	dead := stageFor(t, Options{}, "http://127.0.0.1:1")
	answer, err := dead.ask(t, t.Context(), "/v1/models", "")
	must(t, err)
	if text := read(t, answer); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("X-Should-Retry") != "" {
		t.Errorf("a dead upstream: %d %v %s", answer.StatusCode, answer.Header, text)
	}
}

// An answer that breaks, or goes silent, breaks for the program, too; it never ends as a whole
// one.
func TestAnswerBreaks(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{Silence: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {\"half\n\n")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	})
	for _, path := range []string{"/closes", "/silent"} {
		answer, err := s.ask(t, t.Context(), path, "{}")
		must(t, err)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(text) != "data: {\"half\n\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// A program that goes takes its request to the upstream with it.
func TestProgramGoes(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, leave := context.WithCancel(t.Context())
	answer, err := s.ask(t, ctx, "/v1/messages", "{}")
	must(t, err)
	_, err = io.ReadFull(answer.Body, make([]byte, 9))
	must(t, err)
	leave()
	_ = answer.Body.Close()
	<-gone
}

// Requests that the proxy refuses itself.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	for path, want := range map[string]int{"/../none/v1/x": http.StatusNotFound, "/v1/%00%zz": http.StatusBadRequest} {
		answer, err := http.Get(strings.TrimSuffix(s.base, "up") + strings.TrimPrefix("up"+path, "up/../"))
		if err != nil {
			continue // the client refuses it itself
		}
		if _ = answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
	answer, err := s.ask(t, t.Context(), "/v1/chat/completions", "{}", "Content-Encoding: gzip")
	must(t, err)
	if read(t, answer); answer.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a packed body: %d", answer.StatusCode)
	}
	answer, err = s.ask(t, t.Context(), "/v1/chat/completions", strings.Repeat(" ", web.MaxProgramBytes+1))
	must(t, err)
	if read(t, answer); answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body: %d", answer.StatusCode)
	}
	for _, list := range [][]string{{"A=http://a"}, {"a"}, {"a=ftp://a"}, {"a=http://u:p@a"}, {"a=http://a?b"}, {"=http://a"}, {"a=http://a", "a=http://b"}} {
		if _, err := Upstreams(list); err == nil {
			t.Errorf("%q is taken", list)
		}
	}
}

// A way that is worn takes no more requests, and ends with its last one.
func TestWays(t *testing.T) {
	t.Parallel()
	gate := egress.New(nil)
	t.Cleanup(func() { must(t, gate.Close()) })
	all, err := Upstreams([]string{"a=http://127.0.0.1:1"})
	must(t, err)
	s := newWays(gate, time.Minute)
	first, err := s.take("t", all[0], 0)
	must(t, err)
	again, err := s.take("t", all[0], 0)
	must(t, err)
	if other, err := s.take("other", all[0], 0); err != nil || again != first || other == first {
		t.Errorf("tenants share their ways, and not with others: %v", err)
	}
	first.requests = wayRequests
	next, err := s.take("t", all[0], 0)
	must(t, err)
	if next == first || len(s.ending) != 1 {
		t.Error("a worn way takes requests")
	}
	s.leave(first)
	if len(s.ending) != 1 {
		t.Error("it ended before its last request")
	}
	s.leave(again)
	if len(s.ending) != 0 {
		t.Error("it does not end")
	}
	must(t, s.close())
	if _, err := s.take("t", all[0], 0); !errors.Is(err, errClosed) {
		t.Errorf("after its end: %v", err)
	}
}

// A body arrives whole whether its length is told before or not, and so does none.
func TestForwardedOfAnyLength(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	for _, size := range []int{0, 1, 100_000, 3 << 20} {
		body := strings.Repeat("x", size)
		for _, told := range []bool{true, false} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/v1/files", io.MultiReader(strings.NewReader(body)))
			must(t, err)
			if told {
				r.ContentLength = int64(size)
			}
			answer, err := http.DefaultTransport.RoundTrip(r)
			must(t, err)
			if got := read(t, answer); got != body {
				t.Errorf("%d bytes, told %v: %d came back", size, told, len(got))
			}
		}
	}
}
