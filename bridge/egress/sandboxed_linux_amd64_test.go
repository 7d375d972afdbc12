package egress_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
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
				t.Skipf("this machine does not have the tier: %v", c.Problems)
			}
			test(t, runner)
		})
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// box is a workspace whose programs reach the network by a gate.
type box struct {
	tb     testing.TB
	runner *sandbox.Local
	root   *os.Root
	dir    string
	gate   *egress.Gate
	policy egress.Policy
}

func newBox(tb testing.TB, runner *sandbox.Local, gate *egress.Gate, policy egress.Policy) *box {
	dir := tb.TempDir()
	root, err := os.OpenRoot(dir)
	must(tb, err)
	tb.Cleanup(func() { must(tb, root.Close()) })
	return &box{tb: tb, runner: runner, root: root, dir: dir, gate: gate, policy: policy}
}

// sh runs a script and returns everything that it wrote, and what was denied.
func (b *box) sh(script string) (output string, denied []string) {
	b.tb.Helper()
	session, err := b.gate.Session(egress.Caller{Tenant: "default", Agent: "tester", Tool: "system:shell"}, b.policy)
	must(b.tb, err)
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(b.tb.Context(), runTime)
	defer cancel()
	job := sandbox.Job{
		Scope: kv.AgentScope("default", "tester"), Argv: []string{"/bin/sh", "-c", script}, Root: b.root,
		Policy: sandbox.Policy{Mode: sandbox.ModeNet}, Network: session,
	}
	writer := &lockedBuffer{to: &out}
	_, err = b.runner.Run(ctx, job, sandbox.Streams{Stdout: writer, Stderr: writer})
	must(b.tb, err)
	must(b.tb, session.Close())
	return out.String(), session.Denied()
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("the machine has no %s", program)
	}
}

func TestSandboxed(t *testing.T) {
	need(t, "curl")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("hello " + r.Host)) }))
	defer site.Close()
	address := strings.TrimPrefix(site.URL, "http://")
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		gate := egress.New(nil)
		t.Cleanup(func() { must(t, gate.Close()) })
		b := newBox(t, runner, gate, egress.Policy{Name: "web", Rules: []egress.Rule{{Host: "site.test", Address: address}}})
		if out, denied := b.sh("curl -sS http://site.test/x"); out != "hello site.test" || denied != nil {
			t.Errorf("got %q, %v", out, denied)
		}
		if out, denied := b.sh("curl -sS http://other.test/x"); !strings.HasPrefix(out, "Permission denied: ") || len(denied) != 1 {
			t.Errorf("got %q, %v", out, denied)
		}
		if out, _ := b.sh("curl -sS --noproxy '*' http://" + address + "/ || echo failed"); !strings.HasSuffix(out, "failed\n") {
			t.Errorf("around the proxy gave %q", out)
		}
	})
}
