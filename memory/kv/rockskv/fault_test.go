//go:build linux && cgo && !norocksdb

package rockskv_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// replaceLog puts another file in the place of the descriptor through which
// RocksDB writes its log, and so makes its writes fail as that file's do.
func replaceLog(tb testing.TB, dir, path string, flag int) {
	tb.Helper()
	other, err := os.OpenFile(path, flag, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer other.Close()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		tb.Fatal(err)
	}
	replaced := 0
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || filepath.Dir(target) != dir || !strings.HasSuffix(target, ".log") {
			continue
		}
		var fd int
		if _, err := fmt.Sscanf(filepath.Base(link), "%d", &fd); err != nil {
			tb.Fatal(err)
		}
		if mustFlags(tb, fd)&syscall.O_ACCMODE == syscall.O_RDONLY {
			continue // through which the store looks how long the log is
		}
		if err := syscall.Dup3(int(other.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			tb.Fatal(err)
		}
		replaced++
	}
	if replaced != 1 {
		tb.Fatalf("%d descriptors of a log in %s, want 1", replaced, dir)
	}
}

// mustFlags returns how a descriptor was opened.
func mustFlags(tb testing.TB, fd int) int {
	tb.Helper()
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(info), "flags:")
	var flags int
	if _, err := fmt.Sscanf(rest, "%o", &flags); err != nil {
		tb.Fatalf("%s: %v", info, err)
	}
	return flags
}

func TestLogFull(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	mustCommit(t, db, putA("1"))
	replaceLog(t, dir, "/dev/full", os.O_WRONLY)
	err := db.Commit(t.Context(), putAt(0, "2"))
	if !errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrUnknownOutcome) {
		t.Errorf("error %v, want ErrFull", err)
	}
	wantA(t, db, "1")
	// Meanwhile RocksDB tries to recover and finds that a device can't be
	// synced, so which error the next ones meet is chance.
	for range 3 {
		if err := db.Commit(t.Context(), putAt(0, "2")); err == nil {
			t.Error("a commit on a full log was acknowledged")
		}
		wantA(t, db, "1")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, dir, nil)
	wantA(t, db, "1")
	mustCommit(t, db, putAt(0, "3")) // what was refused raised no sequence
}

func TestLogFails(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	mustCommit(t, db, putA("1"))
	replaceLog(t, dir, "/dev/null", os.O_RDONLY) // writing: bad file descriptor
	if err := db.Commit(t.Context(), putAt(0, "2")); !errors.Is(err, kv.ErrUnknownOutcome) {
		t.Fatalf("commit: error %v, want ErrUnknownOutcome", err)
	}
	for range 3 {
		err := db.Commit(t.Context(), putA("3"))
		if !errors.Is(err, kv.ErrFailed) || errors.Is(err, kv.ErrUnknownOutcome) {
			t.Errorf("later commit: error %v, want ErrFailed", err)
		}
		wantA(t, db, "1")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, dir, nil)
	wantA(t, db, "1")
	mustCommit(t, db, putAt(0, "4")) // what was refused raised no sequence
}

// TestSyncFails lets the write itself pass: only the sync says no, as it does
// for a device file.
func TestSyncFails(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	mustCommit(t, db, putA("1"))
	replaceLog(t, dir, "/dev/null", os.O_WRONLY)
	if err := db.Commit(t.Context(), putA("2")); !errors.Is(err, kv.ErrUnknownOutcome) {
		t.Fatalf("commit: error %v, want ErrUnknownOutcome", err)
	}
	if err := db.Commit(t.Context(), putA("3")); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("later commit: error %v, want ErrFailed", err)
	}
	wantA(t, db, "1")
}

// mustMount makes a file system of that many MiB, and may skip: only root may
// mount one.
func mustMount(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib))
	if errors.Is(err, syscall.EPERM) {
		t.Skip("mounting a small file system needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// bigPut writes its n-th megabyte as the commit behind that many.
func bigPut(n int, behind uint64) kv.Commit {
	batch := new(kv.Batch)
	batch.Put(kv.Blobs, scopeA.Key('b', []byte{byte(n)}), make([]byte, 1<<20))
	ref := kv.Ref{Keyspace: kv.Blobs, Scope: scopeA}
	return kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: behind}}, Batch: batch}
}

// TestDiskFull fills a real file system, until the log and the flushes of
// memtables have no room. Every refused commit says so, and after some room
// is made a new open finds just what was acknowledged.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	mount := mustMount(t, 110)
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 60<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(mount, "store")
	db := mustOpen(t, dir, nil)
	acked, refused := uint64(0), 0
	for n := 0; refused < 20; n++ {
		switch err := db.Commit(t.Context(), bigPut(n, acked)); {
		case err == nil:
			acked++
		case errors.Is(err, kv.ErrFull):
			refused++
		default:
			t.Fatalf("commit %d: error %v, want ErrFull", n, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, dir, nil)
	defer db.Close()
	found, err := db.Sequence(t.Context(), kv.Ref{Keyspace: kv.Blobs, Scope: scopeA})
	if err != nil || found[0] != acked {
		t.Errorf("%d commits found, %v, want %d", found, err, acked)
	}
	mustCommit(t, db, bigPut(0, acked))
}

func TestOpenOnFullDisk(t *testing.T) {
	mount := mustMount(t, 2)
	wantOpenError(t, filepath.Join(mount, "store"), kv.ErrFull, "bytes free")
}
