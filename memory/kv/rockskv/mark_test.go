//go:build linux && cgo && !norocksdb

package rockskv_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/mark"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/rocksfile"
)

func mustMark(tb testing.TB, dir string) mark.Mark {
	tb.Helper()
	m, err := mark.Read(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// mustDurableMark reads the mark as a loss of power leaves it: without what was not
// synced.
func mustDurableMark(tb testing.TB, dir string) mark.Mark {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(dir, mark.Name))
	if err != nil {
		tb.Fatal(err)
	}
	synced := tb.TempDir()
	const slots = 2 * 4096
	mustWrite(tb, synced, mark.Name, string(data[:slots]))
	return mustMark(tb, synced)
}

// newestLog is the log of a store that is written to, and its size.
func newestLog(tb testing.TB, dir string) mark.File {
	tb.Helper()
	logs, err := rocksfile.Logs(dir)
	if err != nil || len(logs) == 0 {
		tb.Fatalf("logs %v: %v", logs, err)
	}
	number := logs[len(logs)-1]
	info, err := os.Stat(filepath.Join(dir, rocksfile.LogName(number)))
	if err != nil {
		tb.Fatal(err)
	}
	return mark.File{Number: number, Length: info.Size()}
}

func wantMarked(tb testing.TB, what string, m mark.Mark, want mark.File) {
	tb.Helper()
	if len(m.Logs) == 0 || m.Logs[len(m.Logs)-1] != want {
		tb.Errorf("%s: the mark says %v, want %v", what, m.Logs, want)
	}
}

// eventually waits for the background work of a store.
func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("%s: not so after twenty seconds", what)
		}
	}
}

// TestMarkFollows wants each sync noted at once and made durable soon, commits that
// were not synced left out, and another log noticed.
func TestMarkFollows(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	for range 3 {
		mustCommit(t, db, putA("synced"))
		synced := newestLog(t, dir)
		wantMarked(t, "behind a synced commit", mustMark(t, dir), synced)
		lazy := putA("lazy")
		lazy.Lazy = true
		mustCommit(t, db, lazy)
		wantMarked(t, "behind a lazy commit", mustMark(t, dir), synced)
		eventually(t, "the mark is durable", func() bool {
			m := mustDurableMark(t, dir)
			return len(m.Logs) > 0 && m.Logs[len(m.Logs)-1] == synced
		})
		copied := filepath.Join(t.TempDir(), "copy")
		if err := db.Checkpoint(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
		if err := db.Flush(); err != nil { // which begins another log
			t.Fatal(err)
		}
		mustMark(t, copied)
		wantA(t, mustOpen(t, copied, nil), "lazy")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	m := mustDurableMark(t, dir)
	number, err := rocksfile.Current(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, rocksfile.ManifestName(number)))
	if err != nil || m.Manifest != (mark.File{Number: number, Length: info.Size()}) {
		t.Errorf("after the end: %+v, %v", m, err)
	}
}

// TestMarkOfLessDurable wants nothing said of logs while commits do not sync them,
// and all of them when the store was closed.
func TestMarkOfLessDurable(t *testing.T) {
	for _, durability := range []rockskv.Durability{rockskv.WAL, rockskv.None} {
		dir := t.TempDir()
		db := mustOpen(t, dir, &rockskv.Options{Durability: durability})
		for range 10 {
			mustCommit(t, db, putA("1"))
		}
		if m := mustMark(t, dir); len(m.Logs) > 0 || m.Manifest.Length == 0 {
			t.Errorf("%v: while it is open: %+v", durability, m)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if durability == rockskv.WAL {
			wantMarked(t, "closed", mustDurableMark(t, dir), newestLog(t, dir))
			if err := os.Truncate(mustGlob(t, dir, "*.log"), 10); err != nil {
				t.Fatal(err)
			}
			wantOpenError(t, dir, kv.ErrDamaged, ".log has 10 bytes")
			continue
		}
		wantA(t, mustOpen(t, dir, nil), "1")
	}
}

// TestMarkAfterFullDisk wants the mark not to count what a failed write left behind.
func TestMarkAfterFullDisk(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	mustCommit(t, db, putA("1"))
	good := newestLog(t, dir)
	replaceLog(t, dir, "/dev/full", os.O_WRONLY)
	for range 3 {
		if err := db.Commit(t.Context(), putA("2")); err == nil {
			t.Fatal("a commit on a full log was acknowledged")
		}
	}
	wantMarked(t, "behind failed writes", mustMark(t, dir), good)
	// Half a record, as a disk without room leaves it.
	log, err := os.OpenFile(mustGlob(t, dir, "*.log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString("half a record"); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wantMarked(t, "closed", mustMark(t, dir), good)
	wantA(t, mustOpen(t, dir, nil), "1")
}
