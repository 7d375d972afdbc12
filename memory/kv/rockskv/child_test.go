//go:build cgo && !norocksdb

package rockskv_test

import (
	"bufio"
	"context"
	"errors"
	"flag" //nolint:depguard // that of the tests themselves
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// The test binary starts itself as a child that uses a store, so that the
// child can be killed. These name what the child does and where.
const (
	childRole = "ROCKSKV_TEST_CHILD"
	childDir  = "ROCKSKV_TEST_DIR"
)

// sideBySide is how many parallel tests run at once unless -parallel says otherwise: they wait
// for the disk.
const sideBySide = "8"

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		flag.Parse()
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
		if !given {
			_ = flag.Set("test.parallel", sideBySide) // it is a number
		}
		os.Exit(m.Run())
	}
	if err := childMain(role, os.Getenv(childDir)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func childMain(role, dir string) error {
	if role == "denied" {
		return childDenied(dir)
	}
	db, err := rockskv.Open(dir, nil)
	if err != nil {
		return err
	}
	fmt.Println("open")
	switch role {
	case "write", "lazy":
		return childWrite(db, role == "lazy")
	case "power":
		return childPower(db, dir)
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until killed
	return err
}

// writers is how many goroutines of a child commit at once.
const writers = 8

func writerScope(w int) kv.Scope { return kv.AgentScope("acme", fmt.Sprint("writer-", w)) }

// childWrite commits for ever. Every writer has a scope of its own and writes
// its next number into two keyspaces, then prints "ack writer number" in one
// piece. It goes on from the number it finds.
func childWrite(db *rockskv.DB, lazy bool) error {
	failed := make(chan error, writers)
	for w := range writers {
		go func() { failed <- writeOn(db, w, lazy) }()
	}
	return <-failed
}

func writeOn(db *rockskv.DB, w int, lazy bool) error {
	ctx := context.Background()
	found, err := db.Sequence(ctx, kv.Ref{Keyspace: kv.Records, Scope: writerScope(w)})
	if err != nil {
		return err
	}
	for n := found[0] + 1; ; n++ {
		c := numbered(w, n)
		c.Lazy = lazy
		if err := db.Commit(ctx, c); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(os.Stdout, "ack %d %d\n", w, n); err != nil {
			return err
		}
	}
}

func numberKey(w int, n uint64) []byte { return writerScope(w).Key('n', fmt.Appendf(nil, "%09d", n)) }

// numbered is a writer's commit number n, guarded by what it wrote before.
func numbered(w int, n uint64) kv.Commit {
	c := kv.Commit{Batch: new(kv.Batch)}
	for _, ks := range []kv.Keyspace{kv.Records, kv.Log} {
		c.Guards = append(c.Guards, kv.Guard{Ref: kv.Ref{Keyspace: ks, Scope: writerScope(w)}, Sequence: n - 1})
		c.Batch.Put(ks, numberKey(w, n), fmt.Appendf(nil, "value %d of %d", n, w))
	}
	return c
}

// childDenied is for a user who may not write dir.
func childDenied(dir string) error {
	_, err := rockskv.Open(dir, nil)
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("open: error is not one of permission: %w", err)
	}
	fmt.Println("denied:", err)
	return nil
}

// child is a running child and what it said.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	once  sync.Once
}

func mustStart(tb testing.TB, role, dir string, prepare func(*exec.Cmd)) *child {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	c := &child{cmd: exec.Command(exe)}
	c.cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	if prepare != nil {
		prepare(c.cmd)
	}
	if _, err := c.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	tb.Cleanup(c.kill)
	return c
}

// kill is kill -9. What the child said before can still be read.
func (c *child) kill() {
	c.once.Do(func() { _ = c.cmd.Process.Kill() })
}

// reap waits for the end of a child whose output has been read.
func (c *child) reap() error { return c.cmd.Wait() }

// mustSay reads one line.
func (c *child) mustSay(tb testing.TB, want string) {
	tb.Helper()
	if !c.lines.Scan() || c.lines.Text() != want {
		tb.Fatalf("child says %q, want %q", c.lines.Text(), want)
	}
}
