package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

func TestRun(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		b.put("a.txt", "one\ntwo\n")
		b.put("sub/b.txt", "b")
		b.want("echo out; echo more", "out\nmore\n")
		b.want("pwd", b.dir+"\n")
		b.want("cat a.txt; cat "+b.dir+"/sub/b.txt", "one\ntwo\nb")
		b.want("echo new > c.txt && mkdir d && mv c.txt d/e && cat d/e && chmod 700 d && touch -d @0 d/e && ls -l --time-style=+%s d | tail -1 | cut -d' ' -f6", "new\n0\n")
		b.want("echo x > $TMPDIR/f && cat $TMPDIR/f && cd && echo y > .z && cat .z", "x\ny\n")
		b.want("env | sort | cut -d= -f1 | tr '\\n' ' '", "HOME LANG PATH PWD TERM TMPDIR ")

		got := b.sh("echo no >&2; exit 7")
		if got.Exit != 7 || got.stderr != "no\n" || got.err != nil {
			t.Errorf("exit 7 gave %+v", got)
		}
		if got := b.sh("kill -TERM $$"); got.Signal != 15 || got.Exit != -1 {
			t.Errorf("a signal gave %+v", got)
		}
		if got := b.run("no-such-program"); !errors.Is(got.err, sandbox.ErrNoProgram) {
			t.Errorf("a missing program gave %v", got.err)
		}
		b.stdin = "to the end"
		if got := b.run("cat"); got.stdout != b.stdin {
			t.Errorf("stdin gave %q", got.stdout)
		}
		b.stdin, b.cwd = "", "sub"
		b.want("cat b.txt", "b")
	})
}

// What the server ignores is not ignored in the tool: a pipe to a reader that went away
// ends a program, without a word.
func TestSignalsAreDefault(t *testing.T) {
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		if got := MustBox(t, runner, 0).sh("yes | head -1"); got.stdout != "y\n" || got.stderr != "" {
			t.Errorf("got %+v", got)
		}
	})
}

// A run that is stopped leaves no process, however it tries to get away.
func TestStopped(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		mark := strconv.Itoa(31_000_000 + os.Getpid()) // seconds that nobody else sleeps
		b := MustBox(t, runner, 0)
		ctx, cancel := context.WithCancel(t.Context())
		script := `trap '' TERM HUP; sleep ` + mark + ` & (setsid sh -c "trap '' TERM; sleep ` + mark + ` & sleep ` + mark + `" &) ; touch ready; sleep ` + mark
		go func() {
			defer cancel()
			for range 1000 {
				if _, err := os.Stat(filepath.Join(b.dir, "ready")); err == nil && len(sleepers(mark)) >= 4 {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		got := b.runIn(ctx, "/bin/sh", "-c", script)
		if !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
		wantNobody(t, mark)

		// Neither does one that ends by itself.
		b.want(`(setsid sleep `+mark+` >/dev/null 2>&1 &); sleep `+mark+` & echo done`, "done\n")
		wantNobody(t, mark)
	})
}

// sleepers are the processes that have a mark in their command line.
func sleepers(mark string) []string {
	text, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output() // fails when there is none
	return strings.Fields(string(text))
}

func wantNobody(t *testing.T, mark string) {
	t.Helper()
	if left := sleepers(mark); len(left) > 0 {
		t.Errorf("processes stay: %v", left)
	}
}

// Output beyond its limit ends the run.
func TestOutputLimit(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		b.policy.Limits.Output = 1 << 20
		got := b.sh("yes")
		if got.err != nil || got.Limit != "output" || len(got.stdout) != 1<<20 {
			t.Errorf("got %d bytes, limit %q, %v", len(got.stdout), got.Limit, got.err)
		}
	})
}

// The modes: read changes nothing, net and open are refused while nothing serves them.
func TestModes(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		b.put("a", "kept")
		b.policy.Mode = sandbox.ModeRead
		got := b.sh("cat a; echo x > a; rm -f a; touch b; chmod 700 a; echo y > $TMPDIR/t && cat $TMPDIR/t")
		if got.stdout != "kepty\n" || got.err != nil {
			t.Errorf("read gave %q %q %v", got.stdout, got.stderr, got.err)
		}
		if entries, _ := os.ReadDir(b.dir); len(entries) != 1 {
			t.Errorf("the workspace has %v", entries)
		}
		for _, mode := range []sandbox.Mode{sandbox.ModeNet, sandbox.ModeOpen, sandbox.ModeOff, "all"} {
			b.policy.Mode = mode
			if got := b.sh("true"); !errors.Is(got.err, sandbox.ErrPolicy) {
				t.Errorf("%s gave %v", mode, got.err)
			}
		}
	})
}

// A root server runs tools as the owner of the workspace, and files are that user's.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run tools as somebody else")
	}
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 1234)
		b.want("id -u; id -g; id -G; echo x > f; ls -ln f | cut -d' ' -f3,4; echo y > $TMPDIR/t; cat $TMPDIR/t", "1234\n1234\n1234\n1234 1234\ny\n")
		b.want("grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status 2>/dev/null | grep -v 0000000000000000; true", "")
	})
}

// Without a tier nothing runs, and the error says why.
func TestUnavailable(t *testing.T) {
	runner := newRunner(t, sandbox.Options{Tier: sandbox.TierLandlock, Without: []string{inner.LayerLandlock}})
	c := runner.Describe(t.Context())
	if c.Confined() || len(c.Problems) != 1 {
		t.Errorf("got %+v", c)
	}
	got := MustBox(t, runner, 0).sh("true")
	if !errors.Is(got.err, sandbox.ErrUnavailable) || !strings.Contains(got.err.Error(), "Landlock") {
		t.Errorf("got %v", got.err)
	}
}

// Off runs unconfined, with limits, and says so.
func TestOff(t *testing.T) {
	runner := newRunner(t, sandbox.Options{Setting: sandbox.Off})
	if c := runner.Describe(t.Context()); c.Tier != "none" || len(c.Gaps) != 1 || !slices.Equal(c.Layers, []string{inner.LayerLimits}) {
		t.Errorf("got %+v", c)
	}
	b := MustBox(t, runner, 0)
	outside := b.put("../outside", "secret")
	b.want("cat "+outside, "secret")
	b.policy.Limits.File = 1000
	if got := b.sh("head -c 2000 /dev/zero > f"); got.Exit == 0 {
		t.Errorf("a limit did not hold: %+v", got)
	}
}

func TestClosed(t *testing.T) {
	runner := sandbox.NewLocal(nil)
	b := MustBox(t, runner, 0)
	must(t, runner.Close())
	must(t, runner.Close())
	if got := b.sh("true"); !errors.Is(got.err, sandbox.ErrClosed) {
		t.Errorf("got %v", got.err)
	}
}
