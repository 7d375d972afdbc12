package egress_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// runTime bounds one run of a test: machines of CI are slow.
const runTime = 30 * time.Second

// eachTier runs a test in every tier that works here.
func eachTier(t *testing.T, test func(t *testing.T, runner *sandbox.Local)) {
	t.Helper()
	for _, tier := range []string{sandbox.TierNamespaces, sandbox.TierLandlock} {
		t.Run(tier, func(t *testing.T) {
			runner := sandbox.NewLocal(&sandbox.Options{Tier: tier})
			t.Cleanup(func() { must(t, runner.Close()) })
			if c := runner.Describe(t.Context()); !c.Confined() {
				machine.Lacks(t, tier, c.Problems)
			}
			test(t, runner)
		})
	}
}

// box is a workspace whose programs reach the network by a gate.
type box struct {
	*world
	tb     testing.TB
	runner *sandbox.Local
	root   *os.Root
	dir    string
	env    []string
}

func newBox(tb testing.TB, runner *sandbox.Local, w *world) *box {
	dir := tb.TempDir()
	root, err := os.OpenRoot(dir)
	must(tb, err)
	tb.Cleanup(func() { must(tb, root.Close()) })
	return &box{world: w, tb: tb, runner: runner, root: root, dir: dir}
}

// sh runs a script and returns everything that it wrote, and what was denied.
func (b *box) sh(script string) (output string, denied []string) {
	b.tb.Helper()
	session := b.session(b.tb)
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(b.tb.Context(), runTime)
	defer cancel()
	job := sandbox.Job{
		Scope: kv.AgentScope("default", "tester"), Argv: []string{"/bin/sh", "-c", script}, Root: b.root, Env: b.env,
		Policy: sandbox.Policy{Mode: sandbox.ModeNet}, Network: session,
	}
	writer := &lockedBuffer{to: &out}
	_, err := b.runner.Run(ctx, job, sandbox.Streams{Stdout: writer, Stderr: writer})
	must(b.tb, err)
	must(b.tb, session.Close())
	if strings.Contains(out.String(), secretValue) {
		b.tb.Errorf("%s\nwrote the secret: %q", script, out.String())
	}
	return out.String(), session.Denied()
}

// want runs a script and looks for a text in what it writes.
func (b *box) want(script, text string) {
	b.tb.Helper()
	if out, denied := b.sh(script); !strings.Contains(out, text) {
		b.tb.Errorf("%s\ngave %q, denied %q, want %q", script, out, denied, text)
	}
}

// refused runs a script, of which one connection must be denied with a text in the refusal.
func (b *box) refused(script, text string) {
	b.tb.Helper()
	out, denied := b.sh(script)
	if len(denied) == 0 || !strings.HasPrefix(denied[0], "Permission denied: ") || !strings.Contains(denied[0], text) {
		b.tb.Errorf("%s\ngave %q, denied %q, want %q", script, out, denied, text)
	}
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("the machine has no %s", program)
	}
}

// What may be reached is reached, by whatever program, and nothing else is.
func TestSandboxed(t *testing.T) {
	need(t, "curl")
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		w := newWorld(t)
		b := newBox(t, runner, w)
		b.want("curl -sS http://plain.test/x", "hello plain.test")
		b.want("curl -sS https://example.com:"+w.securePort+"/x", "hello example.com")
		b.want("python3 -c \"import urllib.request as u; print(u.urlopen('http://plain.test/x').read())\"", "hello plain.test")
		b.want("python3 -c \"import urllib.request as u; print(u.urlopen('https://example.com:"+w.securePort+"/x').read())\"", "hello example.com")

		// Denied.
		b.want("curl -sS http://other.test/x", "Permission denied: no connection to other.test:80")
		b.refused("curl -sS https://other.test/", "other.test:443")
		b.want("python3 -c \"import urllib.request as u; u.urlopen('https://other.test/')\" 2>&1", "Permission denied: no connection to other.test:443")
		b.refused("curl -sS http://plain.test:81/", "plain.test:81")

		// By address, in every spelling.
		hosts := []string{
			w.plainAddress, "[::ffff:127.0.0.1]:" + w.plainPort, "[::ffff:7f00:1]:" + w.plainPort, "2130706433:" + w.plainPort, "0x7f.1:" + w.plainPort,
			"169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "192.168.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::1]", "0.0.0.0",
		}
		out, denied := b.sh("for h in " + strings.Join(hosts, " ") + "; do curl -sS --noproxy nothing --globoff http://$h/latest/meta-data/; done")
		if strings.Count(out, "Permission denied: ") != len(hosts) || strings.Contains(out, "hello") || len(denied) < 10 {
			t.Errorf("gave %q, denied %q", out, denied)
		}

		// Around the proxy.
		for _, script := range []string{
			"curl -sS --max-time 5 --noproxy '*' http://" + w.plainAddress + "/ && echo reached",
			"curl -sS --max-time 5 --noproxy '*' --globoff 'http://[::1]:" + w.plainPort + "/' && echo reached",
			around("socket.AF_INET, socket.SOCK_STREAM", "127.0.0.1", w.plainPort), around("socket.AF_INET, socket.SOCK_DGRAM", "127.0.0.1", w.plainPort),
			around("socket.AF_INET6, socket.SOCK_STREAM", "::1", w.plainPort), around("socket.AF_INET, socket.SOCK_STREAM, 262", "127.0.0.1", w.plainPort),
			fastOpen("127.0.0.1", w.plainPort),
		} {
			if out, _ := b.sh(script); strings.Contains(out, "reached") {
				t.Errorf("%s\ngave %q", script, out)
			}
		}
		w.wantDialled(t)
	})
}

func around(kind, host, port string) string {
	return fmt.Sprintf(`python3 -c "import socket; s = socket.socket(%s); s.settimeout(5); s.connect(('%s', %s)); s.send(b'GET / HTTP/1.0\r\n\r\n'); s.recv(1); print('reached')"`, kind, host, port)
}

func fastOpen(host, port string) string {
	return fmt.Sprintf(`python3 -c "import socket; s = socket.socket(); s.settimeout(5); s.sendto(b'GET / HTTP/1.0\r\n\r\n', 0x20000000, ('%s', %s)); s.recv(1); print('reached')"`, host, port)
}

// A redirect is a request like every other one.
func TestSandboxedRedirect(t *testing.T) {
	need(t, "curl")
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		w := newWorld(t)
		b := newBox(t, runner, w)
		b.want("curl -sSL http://plain.test/to?http://plain.test/y", "hello plain.test")
		b.want("curl -sSL http://plain.test/to?http://other.test/", "Permission denied: no connection to other.test:80")
		b.refused("curl -sSL --noproxy nothing http://plain.test/to?http://"+w.plainAddress+"/", w.plainAddress)
		b.refused("curl -sSL http://plain.test/to?http://169.254.169.254/latest/", "169.254.169.254:80")
		w.wantDialled(t)
	})
}

// A tunnel is for the host that it was asked for.
func TestSandboxedMismatch(t *testing.T) {
	need(t, "curl")
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		w := newWorld(t)
		b := newBox(t, runner, w)
		for _, port := range []string{w.securePort, w.lookedPort} {
			b.refused("curl -sSk --connect-to other.test:443:example.com:"+port+" https://other.test/", `names another host, "other.test"`)
		}
		b.refused("curl -sS -H 'Host: other.test' https://example.com:"+w.lookedPort+"/open/", `names another host, "other.test"`)
		// Plain requests are for the host of their URL, whatever else they say (RFC 9112, 3.2.2).
		b.want("curl -sS -H 'Host: other.test' http://plain.test/x", "hello plain.test")
		w.wantDialled(t)
	})
}

// Names that lead to other places the second time, or to places that are not public.
func TestSandboxedRebinding(t *testing.T) {
	need(t, "curl")
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		w := newWorld(t)
		b := newBox(t, runner, w)
		b.policy = egress.Policy{Rules: []egress.Rule{{Host: "*.rebind.test"}, {Host: "*.static.test"}}}
		var looked atomic.Int64
		w.resolve = func(host string) []netip.Addr {
			if name, ok := strings.CutSuffix(host, ".static.test"); ok {
				return []netip.Addr{netip.MustParseAddr(strings.ReplaceAll(strings.Trim(name, "x"), "-", ":"))}
			}
			if looked.Add(1) == 1 {
				return []netip.Addr{netip.MustParseAddr("93.184.215.14")}
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
		b.want("curl -sS http://a.rebind.test/x", "No connection to a.rebind.test:80")
		if got := w.dialled(); looked.Load() != 1 || len(got) != 1 || got[0] != "93.184.215.14:80" {
			t.Errorf("looked up %d times, dialled %v", looked.Load(), got)
		}
		b.refused("curl -sS http://a.rebind.test/x", "not on the public internet")
		for _, address := range []string{"x--ffff-127.0.0.1", "x--1", "64-ff9b--7f00-1", "2002-7f00-1--x", "fd00--1", "fe80--1", "x--ffff-169.254.169.254", "x--x"} {
			b.refused("curl -sS http://"+address+".static.test/x", "not on the public internet")
		}
		if got := w.dialled(); len(got) != 1 {
			t.Errorf("dialled %v", got)
		}
	})
}

// The secret is in the one header, at the one host, and nowhere inside.
func TestSandboxedSecret(t *testing.T) {
	need(t, "curl")
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		w := newWorld(t)
		b := newBox(t, runner, w)
		api := "https://api.example.com:" + w.lookedPort
		b.want(`curl -sS -H "Authorization: Bearer $API_TOKEN" `+api+`/seen`, "seen 1")
		b.want(`curl -sS -u "me:$API_TOKEN" `+api+`/seen-basic`, "seen 1")

		// Elsewhere there is the placeholder.
		for _, script := range []string{
			`curl -sS -H "X-Other: $API_TOKEN" ` + api + `/seen`, `curl -sS -d "$API_TOKEN" ` + api + `/seen`, `curl -sS ` + api + `"/seen?$API_TOKEN"`,
			`curl -sS -H "Authorization: Bearer $API_TOKEN" https://example.com:` + w.securePort + `/seen`,
			`curl -sS -H "Authorization: Bearer $API_TOKEN" https://example.com:` + w.lookedPort + `/open/seen`,
			`curl -sS -H "Authorization: Bearer $API_TOKEN" http://plain.test/seen`,
			`curl -sSL -H "Authorization: Bearer $API_TOKEN" "http://plain.test/to?http://plain.test/seen"`,
		} {
			b.want(script, "seen 0")
		}

		// An answer that has it comes without.
		auth := `-H "Authorization: Bearer $API_TOKEN" `
		for _, what := range []string{"body", "header", "split", "gzip", "early", "trailer", "json", "base64", "range"} {
			out, _ := b.sh(`curl -sSi --compressed -r 3-200 ` + auth + api + `/echo/` + what)
			if !strings.Contains(out, "***") || strings.Contains(out, base64.StdEncoding.EncodeToString([]byte(secretValue))) {
				t.Errorf("%s gave %q", what, out)
			}
		}
		b.want("curl -sSi "+auth+api+"/echo/brotli", "can't be searched")

		// It is in no environment, file or process inside.
		for _, script := range []string{
			"env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null", `cat "$SSL_CERT_FILE"`,
			"curl -sS " + auth + api + "/echo/body > got; curl -sSv " + auth + api + "/echo/header > got2 2>&1; cat got got2",
		} {
			b.sh(script) // looks by itself
		}
		must(t, filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(secretValue)) {
					t.Errorf("%s has the secret: %v", path, err)
				}
			}
			return err
		}))
		if strings.Contains(w.audited(), secretValue) {
			t.Error("the audit has the secret")
		}
		w.wantDialled(t)
	})
}

// Methods and paths are looked at in tunnels, too.
func TestSandboxedPaths(t *testing.T) {
	need(t, "curl")
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		w := newWorld(t)
		b := newBox(t, runner, w)
		base := "https://example.com:" + w.lookedPort
		b.want("curl -sS "+base+"/open/x", "hello example.com")
		for _, path := range []string{"/", "/openx", "/secret", "/open/../secret", "/open/%2e%2e/secret", "/open/..%2fsecret", "/open//x", "/open/..;/secret", "/open/%252e%252e/secret"} {
			b.want("curl -sS --path-as-is '"+base+path+"'", "is not among the methods and paths")
		}
		b.want("curl -sS -X DELETE "+base+"/open/x", "DELETE /open/x is not among the methods and paths")
		w.wantDialled(t)
	})
}

// Programs of every day work with a host by name.
func TestSandboxedPrograms(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		w := newWorld(t)
		b := newBox(t, runner, w)
		t.Run("git", func(t *testing.T) {
			need(t, "git")
			b.want("git clone -q http://plain.test/files/repo.git got && cat got/README", "a repository")
			b.want("git clone -q https://example.com:"+w.securePort+"/files/repo.git over && cat over/README", "a repository")
			b.refused("git clone -q https://other.test/x.git 2>&1", "other.test:443")
		})
		t.Run("pip", func(t *testing.T) {
			need(t, "pip3")
			b.want("pip3 download -q --disable-pip-version-check --no-deps --index-url https://example.com:"+w.securePort+"/files/simple/ loomtest -d wheels 2>&1; ls wheels", "loomtest-1.0-py3-none-any.whl")
		})
		t.Run("server", func(t *testing.T) {
			if runner.Describe(t.Context()).Tier != sandbox.TierNamespaces {
				t.Skip("tier landlock lets programs listen nowhere")
			}
			b.want("echo own > f; python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & until curl -s http://127.0.0.1:8123/f; do sleep 0.1; done", "own\n")
		})
	})
}

// The proxy of another call can't be used.
func TestSandboxedToken(t *testing.T) {
	w := newWorld(t)
	session := w.session(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	env := session.Env(l.Addr().String(), true)
	go session.Serve(l)
	defer func() { must(t, session.Close()) }()
	for proxy, want := range map[string]int{"http://" + l.Addr().String(): 407, "http://loom:no@" + l.Addr().String(): 407, strings.TrimPrefix(env[0], "http_proxy="): 200} {
		resp, err := through(proxy).Get("http://plain.test/x")
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != want {
			t.Errorf("%s gave %d", proxy, resp.StatusCode)
		}
	}
}
