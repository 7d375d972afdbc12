package egress_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/egress"
)

// secretValue is the one that nobody inside may see.
const secretValue = "s3cr3t-value-0123456789-of-the-api"

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// lockedBuffer lets several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// world are hosts, and a gate to them: plain.test over HTTP, example.com and
// api.example.com over TLS. Every connection is noted.
type world struct {
	gate   *egress.Gate
	policy egress.Policy
	folder string // what hosts have below /files/
	// resolve is what names lead to, but for those with an address in a rule.
	resolve func(host string) []netip.Addr

	plainAddress, plainPort string
	securePort, lookedPort  string // of example.com; the second one's tunnels are looked into

	mu      sync.Mutex
	dials   []string       // guarded by mu
	records []audit.Record // guarded by mu
	allowed []string       // addresses of the hosts
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{folder: t.TempDir(), resolve: func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} }}
	plain, secure, looked := httptest.NewServer(w.hosts()), httptest.NewTLSServer(w.hosts()), httptest.NewTLSServer(w.hosts())
	for _, s := range []*httptest.Server{plain, secure, looked} {
		t.Cleanup(s.Close)
		w.allowed = append(w.allowed, s.Listener.Addr().String())
	}
	port := func(s *httptest.Server) string {
		_, port, err := net.SplitHostPort(s.Listener.Addr().String())
		must(t, err)
		return port
	}
	w.plainAddress, w.plainPort, w.securePort, w.lookedPort = plain.Listener.Addr().String(), port(plain), port(secure), port(looked)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	w.gate = egress.New(&egress.Options{ExtraRoots: root, Resolver: w, Dial: w.dial, Audit: w.audit, Dir: openFolder(t)})
	t.Cleanup(func() { must(t, w.gate.Close()) })
	w.policy = egress.Policy{Name: "web", Rules: []egress.Rule{
		{Host: "plain.test", Address: w.plainAddress},
		{Host: "example.com", Address: secure.Listener.Addr().String()},
		{Host: "example.com", Address: looked.Listener.Addr().String(), Paths: []string{"/open/"}, Methods: []string{"GET"}},
		{Host: "api.example.com", Address: looked.Listener.Addr().String(), Secret: &egress.Secret{Env: "API_TOKEN", Header: "Authorization", Value: secretValue}},
	}}
	for i, port := range []string{w.securePort, w.lookedPort} {
		var n int
		_, err := fmt.Sscan(port, &n)
		must(t, err)
		w.policy.Rules[i+1].Ports = []int{n}
	}
	w.fill(t)
	return w
}

// openFolder makes a folder that others than its owner can enter.
func openFolder(tb testing.TB) string {
	tb.Helper()
	top := tb.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		must(tb, os.Chmod(dir, 0o755))
	}
	return top
}

// hosts answer requests.
func (w *world) hosts() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir(w.folder))))
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.RawQuery, http.StatusFound) })
	seen := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		head, _ := json.Marshal(r.Header)
		n := 0
		if strings.Contains(string(head)+string(body)+r.URL.String(), secretValue) {
			n = 1
		}
		if _, password, ok := r.BasicAuth(); ok && password == secretValue {
			n = 1
		}
		fmt.Fprintf(w, "seen %d", n)
	}
	for _, path := range []string{"/seen", "/seen-basic", "/open/seen"} {
		mux.HandleFunc(path, seen)
	}
	mux.HandleFunc("/echo/{what}", echo)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		fmt.Fprintf(w, "hello %s", host)
	})
	return mux
}

// echo answers with the value of the header, in some form.
func echo(w http.ResponseWriter, r *http.Request) {
	value := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch r.PathValue("what") {
	case "header":
		w.Header().Set("X-Echo", "it is "+value)
	case "early":
		w.Header().Set("Link", "<"+value+">")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, value)
	case "split":
		for _, c := range value {
			fmt.Fprint(w, string(c))
			_ = http.NewResponseController(w).Flush()
		}
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped("a long answer with " + value))
	case "brotli":
		w.Header().Set("Content-Encoding", "br")
		fmt.Fprint(w, value)
	case "trailer":
		w.Header().Set("Trailer", "X-Echo")
		fmt.Fprint(w, value)
		w.Header().Set("X-Echo", value)
	case "json":
		_ = json.NewEncoder(w).Encode(map[string]string{"value": value})
	case "base64":
		fmt.Fprint(w, base64.StdEncoding.EncodeToString([]byte(value)))
	case "range":
		http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader("0123456789"+value))
	default:
		fmt.Fprint(w, "you sent "+value+", thank you, "+value)
	}
}

// fill puts a repository and a Python package among the files of hosts.
func (w *world) fill(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err == nil {
		work := t.TempDir()
		must(t, os.WriteFile(work+"/README", []byte("a repository\n"), 0o644))
		for _, args := range [][]string{
			{"-C", work, "init", "-q"},
			{"-C", work, "add", "."},
			{"-C", work, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first"},
			{"clone", "-q", "--bare", work, w.folder + "/repo.git"},
			{"-C", w.folder + "/repo.git", "update-server-info"},
		} {
			if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
	}
	var wheel bytes.Buffer
	z := zip.NewWriter(&wheel)
	for name, text := range map[string]string{
		"loomtest.py": "", "loomtest-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: loomtest\nVersion: 1.0\n",
		"loomtest-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "loomtest-1.0.dist-info/RECORD": "",
	} {
		f, err := z.Create(name)
		must(t, err)
		_, err = f.Write([]byte(text))
		must(t, err)
	}
	must(t, z.Close())
	folder := w.folder + "/simple/loomtest"
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(folder+"/loomtest-1.0-py3-none-any.whl", wheel.Bytes(), 0o644))
	must(t, os.WriteFile(folder+"/index.html", []byte(`<!DOCTYPE html><html><body><a href="loomtest-1.0-py3-none-any.whl">loomtest-1.0-py3-none-any.whl</a></body></html>`), 0o644))
}

// LookupNetIP is the resolver of the world.
func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return w.resolve(host), nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, address)
	w.mu.Unlock()
	if !slices.Contains(w.allowed, address) {
		return nil, fmt.Errorf("nobody answers at %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (w *world) dialled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dials)
}

// wantDialled sees that nothing but the hosts was connected to, and they were.
func (w *world) wantDialled(t *testing.T) {
	t.Helper()
	if got := w.dialled(); len(got) == 0 || slices.ContainsFunc(got, func(a string) bool { return !slices.Contains(w.allowed, a) }) {
		t.Errorf("dialled %v, allowed are %v", got, w.allowed)
	}
}

func (w *world) audit(_ context.Context, r audit.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, r)
	return nil
}

// audited is the audit as text.
func (w *world) audited() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%+v", w.records)
}

func (w *world) session(tb testing.TB) *egress.Session {
	tb.Helper()
	s, err := w.gate.Session(egress.Caller{Tenant: "default", Agent: "tester", Session: "s1", CallID: "c1", Tool: "system:shell"}, w.policy)
	must(tb, err)
	return s
}

func gzipped(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text)) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// through is a client of a proxy.
func through(proxy string) *http.Client {
	u, err := url.Parse(proxy)
	if err != nil {
		panic(err) // written by the test
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}}
}
