//go:build cgo && !norocksdb

package session_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// The test binary starts itself as a child that is killed in the middle of its
// work. This names the child's directory.
const crashDir = "SESSION_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	fmt.Println(crashChild(dir))
	os.Exit(1) // it should have been killed
}

// crashBatch is what batch n of the child is made of.
func crashBatch(n uint64) []history.Fold {
	made := make([]history.Fold, 1+n%5)
	for i := range made {
		made[i] = fold(n, span(10*n+uint64(i), 10*n+uint64(i)))
		made[i].Text += string(make([]byte, 3000*i))
	}
	return made
}

// crashChild folds and undoes until it is killed, and prints the version and the
// last batch that were acknowledged.
func crashChild(dir string) error {
	db, err := rockskv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	log := session.New(db, kv.NewWriter(db, nil), nil)
	ctx := context.Background()
	for n := 1; ; n++ {
		folds, err := log.Folds(ctx, alice, "s")
		if err != nil {
			return err
		}
		msgs := make([]session.Message, 20)
		for i := range msgs {
			msgs[i] = said("m")
		}
		if _, err := log.AppendMessages(ctx, alice, "s", msgs, ""); err != nil {
			return err
		}
		if n%4 == 0 {
			_, err = log.Undo(ctx, alice, "s", 0, "")
		} else {
			err = log.AppendFolds(ctx, alice, "s", folds.Version, crashBatch(folds.Batch+1))
		}
		if err != nil {
			return err
		}
		if folds, err = log.Folds(ctx, alice, "s"); err != nil {
			return err
		}
		fmt.Println(folds.Version, folds.Batch)
	}
}

// killed runs a child on a directory, kills it at a random moment, and returns
// the version and the batch that it had acknowledged last.
func killed(t *testing.T, dir string) (version, batch uint64) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var fuse *time.Timer
	for lines.Scan() {
		if _, err := fmt.Sscan(lines.Text(), &version, &batch); err != nil {
			t.Errorf("the child says %q", lines.Text())
		}
		if fuse == nil {
			fuse = time.AfterFunc(rand.N(60*time.Millisecond), func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait() // killed: an error is what we want
	return version, batch
}

// Whenever the process dies, a batch is there whole or not at all, and all that
// was acknowledged is.
func TestKilledWhileFolding(t *testing.T) {
	dir := t.TempDir()
	for range 5 {
		version, batch := killed(t, dir)
		open(t, filepath.Join(dir, "store"), func(f *fixture) {
			got := f.mustFolds(t, alice, "s")
			if got.Version < version || got.Version == version && got.Batch != batch {
				t.Errorf("at version %d and batch %d, but %d and %d were acknowledged", got.Version, got.Batch, version, batch)
			}
			t.Logf("%d entries in the journal, %d acknowledged", got.Version, version)
			var want []string
			last := uint64(0)
			for _, live := range got.Live {
				if live.Batch == last {
					continue
				}
				last = live.Batch
				for _, f := range crashBatch(last) {
					want = append(want, f.Text)
				}
			}
			if len(got.Live) != len(want) {
				t.Fatalf("%d folds of %d batches, want %d", len(got.Live), got.Batch, len(want))
			}
			for i, f := range got.Live {
				if f.Text != want[i] {
					t.Errorf("fold %d is %.40q, want %.40q", i, f.Text, want[i])
				}
			}
		})
	}
}
