package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

//go:embed testdata/hostile_requests.py
var hostileRequests string

// theSecret is never seen inside.
const theSecret = "the-real-token-of-the-api/+?"

// hostileFile is a profile with a host, one of which a part may be asked for, and one that
// gets a secret.
const hostileFile = `
[profile.web]
extends = "builtin:net"
[[profile.web.allow]]
host = "site.test"
address = "$OPEN"
[[profile.web.allow]]
host = "narrow.test"
address = "$NARROW"
paths = ["/open/"]
methods = ["GET"]
[[profile.web.allow]]
host = "example.com"
address = "$SECURE"
secret = { env = "API_TOKEN", from = "file:$DIR/token", header = "Authorization" }

[[bind]]
agent = "web"
profile = "web"
`

// slowRequests holds connections to the proxy with requests that never end.
const slowRequests = `
import os, socket, time, urllib.parse
p, held = urllib.parse.urlsplit(os.environ["http_proxy"]), []
for i in range(200):
    try: s = socket.create_connection((p.hostname, p.port), 1)
    except OSError: break # it takes no more
    s.sendall(b"GET http://site.test/slow HTTP/1.1\r\nX-A: ")
    held.append(s)
print("held", flush=True)
while True:
    time.sleep(0.2)
    for s in held:
        try: s.send(b"a")
        except OSError: pass
`

// rawHost is a listener that keeps every byte that comes, and every request in it.
type rawHost struct {
	net.Listener
	mu       sync.Mutex
	conns    int             // guarded by mu
	raw      bytes.Buffer    // guarded by mu
	requests []*http.Request // guarded by mu
	faults   []string        // guarded by mu; what is no request
}

// mustRawHost listens on 127.0.0.1.
func mustRawHost(tb testing.TB) *rawHost {
	tb.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(tb, err)
	w := &rawHost{Listener: l}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(conn)
		}
	}()
	return w
}

func (w *rawHost) address() string { return w.Addr().String() }

func (w *rawHost) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	w.mu.Lock()
	w.conns++
	w.mu.Unlock()
	from := bufio.NewReader(io.TeeReader(conn, writerFunc(func(p []byte) (int, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.raw.Write(p)
	})))
	for {
		r, err := http.ReadRequest(from)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.mu.Lock()
				w.faults = append(w.faults, err.Error())
				w.mu.Unlock()
			}
			return
		}
		w.mu.Lock()
		w.requests = append(w.requests, r)
		w.mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/answer-headers":
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n", strings.Repeat("X-Header: y\r\n", 1<<20), "\r\n")
			return
		case "/redirect":
			fmt.Fprint(conn, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
		case "/open/ws":
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
			return
		default:
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// vault is a host that gets the secret, and sends it back in every way.
type vault struct {
	*httptest.Server
	mu    sync.Mutex
	right int      // requests that have it in its header; guarded by mu
	wrong []string // those that have it elsewhere; guarded by mu
}

func mustVault(tb testing.TB) *vault {
	tb.Helper()
	v := &vault{}
	v.Server = httptest.NewUnstartedServer(v)
	v.EnableHTTP2, v.Config.ErrorLog = true, slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	v.StartTLS()
	tb.Cleanup(v.Close)
	return v
}

func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	elsewhere := r.Clone(r.Context())
	elsewhere.Header.Del("Authorization")
	all := fmt.Sprint(elsewhere.Header, r.Trailer, r.URL, r.Host, string(body))
	v.mu.Lock()
	if secret == theSecret {
		v.right++
	}
	if strings.Contains(all, theSecret) || strings.Contains(all, url.QueryEscape(theSecret)) {
		v.wrong = append(v.wrong, all)
	}
	v.mu.Unlock()
	h := w.Header()
	switch strings.TrimPrefix(r.URL.Path, "/echo/") {
	case "body":
		fmt.Fprint(w, secret)
	case "header":
		h.Set("X-Echo", "a "+secret)
	case "name":
		h["X-"+hex.EncodeToString([]byte(secret))] = []string{"1"}
	case "cookie":
		h.Add("Set-Cookie", "a="+url.QueryEscape(secret))
	case "location":
		h.Set("Location", "http://site.test/?"+url.QueryEscape(secret))
		w.WriteHeader(http.StatusFound)
	case "split":
		for _, c := range []byte("x" + secret + "y") {
			_, _ = w.Write([]byte{c})
			_ = http.NewResponseController(w).Flush()
		}
	case "gzip":
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(secret))
		_ = z.Close()
	case "deflate":
		h.Set("Content-Encoding", "deflate")
		fmt.Fprint(w, secret)
	case "reason":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 200 %s\r\nContent-Length: 2\r\n\r\nok", secret)
			_ = conn.Close()
		}
	case "early":
		h.Set("Link", "<"+secret+">")
		w.WriteHeader(http.StatusEarlyHints)
		h.Del("Link")
	case "trailer":
		h.Set("Trailer", "X-Echo")
		fmt.Fprint(w, "ok")
		h.Set("X-Echo", secret)
	case "forms":
		for pad := range 3 {
			text := []byte(strings.Repeat("p", pad) + secret + "s")
			fmt.Fprintln(w, base64.StdEncoding.EncodeToString(text), base64.URLEncoding.EncodeToString(text), hex.EncodeToString(text), strings.ToUpper(hex.EncodeToString(text)))
		}
		quoted, _ := json.Marshal(secret)
		fmt.Fprintln(w, string(quoted), url.QueryEscape(secret), url.PathEscape(secret))
	default:
		fmt.Fprint(w, "seen ", strings.Count(all, secret) > 0 && secret != "")
	}
}

// formsOf are the ways in which something inside could know the secret: as it is, and as
// encodings have it, wherever it begins.
func formsOf(secret string) []string {
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for pad := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("p", pad) + secret))
		forms = append(forms, text[4:len(text)-4], strings.NewReplacer("+", "-", "/", "_").Replace(text)[4:len(text)-4])
	}
	return forms
}

// Whatever a program says to the proxy of its call, nothing is connected to but what its
// profile allows, requests arrive as they were looked at, and the secret is seen nowhere but
// by its host in its header.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			open, narrow, canary, safe, dir := mustRawHost(t), mustRawHost(t), mustRawHost(t), mustVault(t), t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "token"), []byte(theSecret+"\n"), 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: safe.Certificate().Raw}), 0o600))
			file := strings.NewReplacer("$OPEN", open.address(), "$NARROW", narrow.address(), "$SECURE", safe.Listener.Addr().String(), "$DIR", dir).Replace(hostileFile)
			must(t, os.WriteFile(filepath.Join(dir, "settings.toml"), []byte(file), 0o600))
			p := MustRunIn(t, noEnvironment,
				"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--workspace", t.TempDir(), "--sandbox-tier", tier,
				"--config", filepath.Join(dir, "settings.toml"), "--egress-ca", filepath.Join(dir, "ca.pem"))
			w := &shellWorld{t, p, tier}
			if s := w.status().GetSandbox(); s.GetTier() != tier {
				lacks(t, tier, s.GetProblems())
			}
			w.put("attack.py", hostileRequests)
			// Meanwhile another call opens connections to its proxy and says next to nothing.
			slow := caller{w, "web", "slow"}
			slow.untilPrinted(slow.job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", slowRequests}}).ID, "held")
			_, port, err := net.SplitHostPort(canary.address())
			must(t, err)
			got := w.as("web", "shell:run", object{"command": "env > environment; cat /proc/*/environ >> environment; python3 attack.py " + port + " > answers 2> errors; echo $?"})
			if complaints, err := os.ReadFile(filepath.Join(w.Workspace, "errors")); err != nil || len(complaints) > 0 || !strings.Contains(got.GetOutputJson(), `"stdout":"0\n"`) {
				t.Fatalf("the attacker ended with %s, %v, %v", complaints, err, got)
			}
			answers, err := os.ReadFile(filepath.Join(w.Workspace, "answers"))
			must(t, err)
			ok, cases := 0, 0
			for line := range strings.Lines(string(answers)) {
				name, answer, _ := strings.Cut(line, "\t")
				cases++
				if strings.HasPrefix(name, "ok") {
					if ok++; !strings.Contains(answer, "200 OK") {
						t.Errorf("%s was answered %s", name, answer)
					}
				}
			}
			if ok != 4 || cases < 150 {
				t.Errorf("%d answers, of which %d to what is allowed", cases, ok)
			}
			narrow.wantNarrow(t)
			if canary.conns != 0 {
				t.Errorf("%d connections where none may be: %s", canary.conns, &canary.raw)
			}
			safe.mu.Lock()
			if safe.right < 8 || len(safe.wrong) > 0 {
				t.Errorf("the host got the secret %d times, and elsewhere %v", safe.right, safe.wrong)
			}
			safe.mu.Unlock()
			list, err := w.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "x", CallerId: "web", PageSize: 1000})
			must(t, err)
			seen := map[string]string{
				"an answer": got.String(), "the audit": fmt.Sprint(list), "the log": p.Log.String(), "another host": open.text() + narrow.text(),
			}
			must(t, filepath.WalkDir(w.Workspace, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					text, err := os.ReadFile(path)
					seen[path] = string(text)
					return err
				}
				return err
			}))
			for where, text := range seen {
				for _, form := range formsOf(theSecret) {
					if at := strings.Index(text, form); at >= 0 {
						t.Errorf("%s holds the secret as %s: …%s", where, form, text[max(0, at-200):at])
					}
				}
			}
			t.Logf("%d requests, %d connections to hosts, 0 wrong; the secret was sent %d times, and seen inside 0 times", cases, open.conns+narrow.conns, safe.right)
		})
	}
}

func (w *rawHost) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.raw.String()
}

// wantNarrow fails the test for a request that was not allowed, or could be read in two ways.
func (w *rawHost) wantNarrow(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/open/") || strings.Contains(r.URL.Path, "..") || r.Host != "narrow.test" || r.Header.Get("Upgrade") != "" {
			t.Errorf("the host was asked %s %s, %s, %v", r.Method, r.URL, r.Host, r.Header)
		}
	}
	if len(w.faults) > 0 || strings.Contains(w.raw.String(), "/secret") || len(w.requests) == 0 {
		t.Errorf("the host read %d requests and %v:\n%s", len(w.requests), w.faults, &w.raw)
	}
}
