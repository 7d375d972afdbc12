//go:build cgo && !norocksdb

package rockskv_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// defaultRounds of kill -9 run in the ordinary test, in a few seconds;
// LOOM_SOAK_ROUNDS asks for another number.
const defaultRounds = 10

func soakRounds(tb testing.TB) int {
	tb.Helper()
	text := os.Getenv("LOOM_SOAK_ROUNDS")
	if text == "" {
		return defaultRounds
	}
	rounds, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatalf("LOOM_SOAK_ROUNDS: %v", err)
	}
	return rounds
}

// TestSoakKill kills a child that commits, at random moments, again and again on
// one directory. Whatever was acknowledged is found, every commit is whole, and
// the sequences are those of the commits.
func TestSoakKill(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"write", "lazy"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			testKill(t, role, soakRounds(t))
		})
	}
}

func testKill(t *testing.T, role string, rounds int) {
	dir := filepath.Join(t.TempDir(), "store")
	total := uint64(0)
	for range rounds {
		acked := killOnce(t, role, dir)
		total = wantConsistent(t, dir, acked)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d rounds, %d commits", rounds, total)
}

// killOnce returns the last number each writer had acknowledged; zero where it
// had none this time.
func killOnce(t *testing.T, role, dir string) (acked [writers]uint64) {
	t.Helper()
	c := mustStart(t, role, dir, nil)
	c.mustSay(t, "open")
	// From before the first commit to well after several joins.
	fuse := time.AfterFunc(rand.N(120*time.Millisecond), c.kill)
	defer fuse.Stop()
	for c.lines.Scan() {
		var w int
		var n uint64
		if _, err := fmt.Sscanf(c.lines.Text(), "ack %d %d", &w, &n); err != nil {
			t.Fatalf("child says %q", c.lines.Text())
		}
		acked[w] = n
	}
	_ = c.reap() // killed: an error is what we want
	return acked
}

// wantConsistent checks a store after a kill and returns how many commits it
// holds.
func wantConsistent(t *testing.T, dir string, acked [writers]uint64) (total uint64) {
	t.Helper()
	db := mustOpen(t, dir, nil)
	defer db.Close()
	for w := range writers {
		found := wantWhole(t, db, w)
		if found < acked[w] {
			t.Errorf("writer %d: %d acknowledged, %d found", w, acked[w], found)
		}
		// One more can be there: written, and killed before the word got out.
		if acked[w] > 0 && found > acked[w]+1 {
			t.Errorf("writer %d: %d acknowledged, yet %d found", w, acked[w], found)
		}
		total += found
	}
	return total
}

// wantWhole checks that a writer's numbers are the same, without gaps, in both
// keyspaces and both sequences, and returns the last.
func wantWhole(t *testing.T, db *rockskv.DB, w int) uint64 {
	t.Helper()
	s := writerScope(w)
	sequences, err := db.Sequence(t.Context(), kv.Ref{Keyspace: kv.Records, Scope: s}, kv.Ref{Keyspace: kv.Log, Scope: s})
	if err != nil {
		t.Fatal(err)
	}
	for i, ks := range []kv.Keyspace{kv.Records, kv.Log} {
		n := uint64(0)
		for pair, err := range db.Scan(t.Context(), ks, kv.Prefix(s.AppendPrefix(nil))) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if string(pair.Key) != string(numberKey(w, n)) || string(pair.Value) != fmt.Sprintf("value %d of %d", n, w) {
				t.Fatalf("writer %d, %s: at %d stands %q = %q", w, ks, n, pair.Key, pair.Value)
			}
		}
		if n != sequences[i] || sequences[i] != sequences[0] {
			t.Errorf("writer %d, %s: %d commits, sequences %v", w, ks, n, sequences)
		}
	}
	return sequences[0]
}

// TestSoakKillWhileCreating kills a child that makes a store, at random moments:
// the directory opens afterwards.
func TestSoakKillWhileCreating(t *testing.T) {
	t.Parallel()
	for range soakRounds(t) {
		dir := filepath.Join(t.TempDir(), "store")
		c := mustStart(t, "hold", dir, nil)
		time.AfterFunc(rand.N(80*time.Millisecond), c.kill)
		for c.lines.Scan() {
		}
		_ = c.reap()
		db := mustOpen(t, dir, nil)
		mustCommit(t, db, putA("1"))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenLockedByOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := mustStart(t, "hold", dir, nil)
	c.mustSay(t, "open")
	wantOpenError(t, dir, kv.ErrLocked)
	c.kill()
	_ = c.reap()
	mustOpen(t, dir, nil)
}

func TestOpenDenied(t *testing.T) {
	for _, mode := range []os.FileMode{0o000, 0o500} {
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		// Make the way to the directory passable, so that it alone refuses.
		for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
			if err := os.Chmod(up, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		c := mustStart(t, "denied", dir, asNobody)
		c.lines.Scan()
		said := c.lines.Text()
		if err := c.reap(); err != nil {
			t.Errorf("mode %v: %q, %v", mode, said, err)
		}
	}
}

// asNobody takes root's rights away, for which no directory is closed.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	cmd.Path = "/proc/self/exe" // the binary may lie where nobody can't go
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
