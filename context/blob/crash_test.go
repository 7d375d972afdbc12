//go:build cgo && !norocksdb

package blob_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// The test binary starts itself as a child that is killed in the middle of its
// work. This names the child's directory.
const crashDir = "BLOB_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	fmt.Println(crashChild(dir))
	os.Exit(1) // it should have been killed
}

// crashBody is what step n of the child stores: every third is large, every
// fourth is a copy of one before.
func crashBody(n int) []byte {
	if n%4 == 3 {
		n -= 2
	}
	if n%3 == 0 {
		return noise(uint64(n), blob.ChunkBytes+n)
	}
	return noise(uint64(n), 100+n)
}

// crashChild stores, promotes and collects until it is killed, and prints the
// number of each step that was acknowledged.
func crashChild(dir string) error {
	db, err := rockskv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	now := noon
	writer := kv.NewWriter(db, nil)
	s := blob.New(db, writer, &blob.Options{Sessions: &world{}, CollectEvery: -1, Now: func() time.Time { return now }})
	ctx := context.Background()
	for n := 1; ; n++ {
		stored, err := s.Add(ctx, alice, crashBody(n))
		if err != nil {
			return err
		}
		id := fmt.Sprintf("step_%03d", n)
		err = writer.Do(ctx, kv.Request{Refs: []kv.Ref{s.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, err := s.Stage(ctx, tx, alice, stored, blob.Entry{StepID: id, Category: "shell"})
			return err
		}})
		if err != nil {
			return err
		}
		if n%2 == 0 {
			if _, err := s.Promote(ctx, alice, id, blob.Promotion{Tier: blob.LongTerm}); err != nil {
				return err
			}
		}
		fmt.Println(n)
		now = now.Add(10 * time.Minute)
		if _, err := s.Collect(ctx, alice, &blob.CollectOptions{Orphans: true}); err != nil {
			return err
		}
	}
}

// Whenever the process dies: what was acknowledged is there byte for byte, or
// is known to have been collected, and what had to stay has stayed.
func TestKilledAtAnyMoment(t *testing.T) {
	for round := range rounds(4, 2) {
		dir := t.TempDir()
		last := killChild(t, dir, rounds(25, 8)+11*round)
		db, err := rockskv.Open(filepath.Join(dir, "store"), nil)
		if err != nil {
			t.Fatal(err)
		}
		f := newFixtureOn(t, db, blob.Options{Sessions: &world{}, CollectEvery: -1})
		refs := make(map[string]int64)
		for n := 1; n <= last+1; n++ {
			e, err := f.Lookup(t.Context(), alice, fmt.Sprintf("step_%03d", n))
			switch {
			case n > last && errors.Is(err, blob.ErrNotFound), n%2 == 1 && errors.Is(err, blob.ErrCollected):
				continue
			case err != nil:
				t.Fatalf("step %d of %d: %v", n, last, err)
			}
			refs[e.Ref] = e.Size
			if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, crashBody(n)) {
				t.Errorf("step %d came back different", n)
			}
		}
		var size int64
		for _, n := range refs {
			size += n
		}
		f.checkUsage(t, alice, int64(len(refs)), size)
		f.now = late
		f.mustCollect(t, alice, &blob.CollectOptions{Orphans: true})
		for n := 2; n <= last; n += 2 {
			e := f.mustLookup(t, alice, fmt.Sprintf("step_%03d", n))
			if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, crashBody(n)) {
				t.Errorf("after another collection step %d came back different", n)
			}
		}
		f.writer.Close()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killChild runs the child until it has acknowledged so many steps, kills it,
// and returns the last that it acknowledged.
func killChild(t *testing.T, dir string, steps int) int {
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
	last := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		if last == steps {
			// It goes on working until it is dead.
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || last < steps {
		t.Fatalf("the child ended by itself after %d steps", last)
	}
	return last
}
