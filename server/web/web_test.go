package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// newFace has a handler for each audience, which answers with what it was sent.
func newFace(o server.Options, hosts ...string) *Face {
	f := New(Options{Server: o, Hosts: hosts})
	for path, who := range map[string]Audience{"/calls": Callers, "/programs": Programs, "/hosts": Hosts, "/figures": Operators, "/page": Everybody} {
		f.Handle(path, who, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if id, ok := auth.Of(r.Context()); ok == (who == Everybody) || ok && id.Tenant() != auth.DefaultTenant {
				http.Error(w, "the caller is not known", http.StatusTeapot)
			}
			_, _ = io.Copy(w, r.Body)
		}))
	}
	f.Handle("/panic", Callers, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") }))
	return f
}

// Which hosts and origins may reach which handlers. Every answer has the headers that keep a
// browser from guessing, framing and storing, and a refusal is a status with a reason.
func TestWhoMayAsk(t *testing.T) {
	f := newFace(server.Options{}, "loom.example")
	const ok, no = http.StatusOK, http.StatusForbidden
	for _, test := range []struct {
		host, headers                string
		calls, hosts, figures, pages int
	}{
		{"127.0.0.1:1", "", ok, ok, ok, ok},
		{"[::1]:1", "", ok, ok, ok, ok},
		{"10.1.2.3", "", ok, ok, ok, ok},
		{"localhost", "", ok, ok, ok, ok},
		{"LOOM.example:1", "", ok, ok, ok, ok},
		{"evil.example", "", no, no, no, no},
		{"localhost.evil.example", "", no, no, no, no},
		{"localhost:1", "Origin: http://localhost:1", ok, ok, ok, ok},
		{"localhost:1", "Origin: http://localhost:2", no, ok, no, no},
		{"localhost:1", "Origin: https://loom.example", no, ok, no, no},
		{"localhost:1", "Origin: http://evil.example", no, no, no, no},
		{"localhost:1", "Origin: null", no, no, no, no},
		{"localhost:1", "Sec-Fetch-Site: none", ok, ok, ok, ok},
		{"localhost:1", "Sec-Fetch-Site: same-origin", ok, ok, ok, ok},
		{"localhost:1", "Sec-Fetch-Site: cross-site", no, no, no, no},
		{"localhost:1", "Sec-Fetch-Site: same-site", no, no, no, no},
		{"localhost:1", "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate", no, no, no, ok},
	} {
		for path, want := range map[string]int{"/calls": test.calls, "/programs": test.calls, "/hosts": test.hosts, "/figures": test.figures, "/page": test.pages} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("x"))
			r.Host = test.host
			for line := range strings.Lines(test.headers) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			f.http.Handler.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s of %s with %q: %d, want %d", path, test.host, test.headers, w.Code, want)
			}
			for _, name := range []string{"X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Content-Security-Policy", "Cache-Control"} {
				if w.Header().Get(name) == "" {
					t.Errorf("%s of %s lacks %s", path, test.host, name)
				}
			}
			if want == ok {
				continue
			}
			var s struct {
				Code    int
				Details []struct{ Reason string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Code != 7 || len(s.Details) == 0 || s.Details[0].Reason == "" {
				t.Errorf("a refusal is %s: %v", w.Body, err)
			}
		}
	}
}

// start serves a face until the test ends.
func start(tb testing.TB, f *Face) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(listener) }()
	tb.Cleanup(func() {
		must(tb, f.Shutdown(context.Background()))
		must(tb, <-ended)
	})
	return listener.Addr().String()
}

// A client that never ends its header or its body is cut off; a fault ends one request alone.
func TestSlowClients(t *testing.T) {
	address := start(t, newFace(server.Options{Limits: server.Limits{ConnectionTimeout: 50 * time.Millisecond}}))
	for name, sent := range map[string]string{
		"header": "POST /calls HTTP/1.1\r\nHost: localhost\r\nX-",
		"body":   "POST /calls HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
		"chunks": "POST /calls HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
		"fault":  "POST /panic HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		_, err = io.WriteString(conn, sent)
		must(t, err)
		answer, err := io.ReadAll(conn) // until the server closes
		if err != nil || strings.Contains(string(answer), "200 OK") {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		_ = conn.Close()
	}
	if answer, err := http.Post("http://"+address+"/calls", "", strings.NewReader("x")); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("after the others: %v, %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
}

// A request without an end is told to end when the face stops.
func TestStop(t *testing.T) {
	f := New(Options{})
	ending, end := context.WithCancel(context.Background())
	f.OnStop(end)
	f.Handle("/endless", Callers, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-ending.Done()
	}))
	address := start(t, f)
	answer, err := http.Get("http://" + address + "/endless")
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	read := bufio.NewReader(answer.Body)
	_, err = read.ReadString('\n')
	must(t, err)
	must(t, f.Shutdown(t.Context()))
	if _, err := read.ReadString('\n'); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
}
