//go:build cgo && !norocksdb

package rockskv_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/barerocks"
)

const readyMarker = "loom-bridge store\nformat 5\n"

func mustWrite(tb testing.TB, dir, name, text string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// files returns the content of every file under dir by its path.
func files(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

// scopeA and keyA serve tests that need just one.
var (
	scopeA = kv.AgentScope("acme", "alpha")
	keyA   = scopeA.Key('k', []byte("a"))
	refA   = kv.Ref{Keyspace: kv.Records, Scope: scopeA}
)

// putA returns a blind commit of a value to keyA.
func putA(value string) kv.Commit {
	batch := new(kv.Batch)
	batch.Put(kv.Records, keyA, []byte(value))
	return kv.Commit{Guards: []kv.Guard{{Ref: refA, Any: true}}, Batch: batch}
}

// putAt returns a commit of a value to keyA that expects a sequence.
func putAt(sequence uint64, value string) kv.Commit {
	c := putA(value)
	c.Guards[0] = kv.Guard{Ref: refA, Sequence: sequence}
	return c
}

func mustCommit(tb testing.TB, e kv.Engine, c kv.Commit) {
	tb.Helper()
	if err := e.Commit(tb.Context(), c); err != nil {
		tb.Fatalf("commit: %v", err)
	}
}

// wantA checks the value of keyA.
func wantA(tb testing.TB, e kv.Reader, value string) {
	tb.Helper()
	values, err := e.Get(tb.Context(), kv.Records, keyA)
	if err != nil || string(values[0]) != value {
		tb.Errorf("get = %q, %v, want %q", values, err, value)
	}
}

// mustStore makes a store that holds something and closes it.
func mustStore(tb testing.TB, dir string) {
	tb.Helper()
	db := mustOpen(tb, dir, nil)
	mustCommit(tb, db, putA("1"))
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

func wantOpenError(tb testing.TB, dir string, want error, words ...string) {
	tb.Helper()
	db, err := rockskv.Open(dir, nil)
	if err == nil {
		_ = db.Close()
	}
	if !errors.Is(err, want) {
		tb.Fatalf("open: error %v, want %v", err, want)
	}
	for _, word := range append(words, dir) {
		if !strings.Contains(err.Error(), word) {
			tb.Errorf("error %q does not say %q", err, word)
		}
	}
}

func TestOpenMakesDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "store")
	mustStore(t, dir)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of a new directory = %v, %v, want 0700", info.Mode(), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "LOOM-FORMAT"))
	if err != nil || string(text) != readyMarker {
		t.Errorf("marker = %q, %v", text, err)
	}
}

func TestOpenFreshDirectory(t *testing.T) {
	for _, name := range []string{"empty", "lost+found"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if name != "empty" {
				if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			mustStore(t, dir)
		})
	}
}

func TestOpenRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	mustStore(t, "store")
	wantA(t, mustOpen(t, "store", nil), "1")
}

func TestOpenLocked(t *testing.T) {
	dir := t.TempDir()
	first := mustOpen(t, dir, nil)
	before := files(t, dir)
	wantOpenError(t, dir, kv.ErrLocked, "stop the other server")
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("the refused open changed files:\n%s", diff)
	}
	mustCommit(t, first, putA("1"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	wantA(t, mustOpen(t, dir, nil), "1")
}

func TestOpenForeign(t *testing.T) {
	tests := []struct {
		name string
		make func(tb testing.TB, dir string)
	}{
		{"some file", func(tb testing.TB, dir string) { mustWrite(tb, dir, "thesis.txt", "precious") }},
		{"hidden file", func(tb testing.TB, dir string) { mustWrite(tb, dir, ".git", "precious") }},
		{"sub-directory", func(tb testing.TB, dir string) {
			mustStore(tb, filepath.Join(dir, "inner"))
		}},
		{"other RocksDB", func(tb testing.TB, dir string) {
			db, err := barerocks.Open(dir)
			if err != nil {
				tb.Fatal(err)
			}
			db.Close()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.make(t, dir)
			before := files(t, dir)
			wantOpenError(t, dir, kv.ErrForeign, "choose an empty")
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("the refused open changed files:\n%s", diff)
			}
		})
	}
}

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, "file", "precious")
	wantOpenError(t, filepath.Join(dir, "file"), kv.ErrForeign)
}

func TestOpenMarker(t *testing.T) {
	tests := []struct {
		name, text string
		want       error
		words      []string
	}{
		{"newer", "loom-bridge store\nformat 6\n", kv.ErrNewer, []string{"format 6", "reads 5"}},
		{"newer with unknown lines", "loom-bridge store\nformat 17\nshards 4\n", kv.ErrNewer, []string{"format 17"}},
		{"empty", "", kv.ErrDamaged, []string{"LOOM-FORMAT"}},
		{"other text", "hello\n", kv.ErrDamaged, nil},
		{"no number", "loom-bridge store\nformat x\n", kv.ErrDamaged, nil},
		{"zero", "loom-bridge store\nformat 0\n", kv.ErrDamaged, nil},
		{"cut", "loom-bridge store\n", kv.ErrDamaged, nil},
		{"unknown line", "loom-bridge store\nformat 1\nshards 4\n", kv.ErrDamaged, nil},
		{"huge", strings.Repeat("x", 1<<20), kv.ErrDamaged, nil},
	}
	dir := t.TempDir()
	mustStore(t, dir)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mustWrite(t, dir, "LOOM-FORMAT", test.text)
			before := files(t, dir)
			wantOpenError(t, dir, test.want, test.words...)
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("the refused open changed files:\n%s", diff)
			}
		})
	}
	mustWrite(t, dir, "LOOM-FORMAT", readyMarker)
	wantA(t, mustOpen(t, dir, nil), "1")
}

// mustGlob returns the newest file that matches.
func mustGlob(tb testing.TB, dir, pattern string) string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		tb.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return found[len(found)-1]
}

func TestOpenDamaged(t *testing.T) {
	t.Parallel()
	truncate := func(pattern string, keep int64) func(testing.TB, string) {
		return func(tb testing.TB, dir string) {
			path := mustGlob(tb, dir, pattern)
			if err := os.Truncate(path, keep); err != nil {
				tb.Fatal(err)
			}
		}
	}
	remove := func(pattern string) func(testing.TB, string) {
		return func(tb testing.TB, dir string) {
			if err := os.Remove(mustGlob(tb, dir, pattern)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	tests := []struct {
		name string
		harm func(tb testing.TB, dir string)
	}{
		{"CURRENT empty", truncate("CURRENT", 0)},
		{"CURRENT cut", truncate("CURRENT", 5)},
		{"CURRENT gone", remove("CURRENT")},
		{"MANIFEST empty", truncate("MANIFEST-*", 0)},
		{"MANIFEST cut", truncate("MANIFEST-*", 100)},
		{"MANIFEST gone", remove("MANIFEST-*")},
		{"table cut", truncate("*.sst", 10)},
		{"table gone", remove("*.sst")},
		{"data gone", func(tb testing.TB, dir string) {
			for path := range files(tb, dir) {
				if filepath.Base(path) != "LOOM-FORMAT" {
					if err := os.Remove(path); err != nil {
						tb.Fatal(err)
					}
				}
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			mustStore(t, dir)
			// The second open writes what the first had in its log to a table.
			mustStore(t, dir)
			test.harm(t, dir)
			wantOpenError(t, dir, kv.ErrDamaged, "backup")
		})
	}
}

// TestOpenUnfinished opens what a crash leaves while a store is being made.
func TestOpenUnfinished(t *testing.T) {
	const creating = readyMarker + "state creating\n"
	tests := []struct {
		name string
		make func(tb testing.TB, dir string)
	}{
		{"marker half written", func(tb testing.TB, dir string) { mustWrite(tb, dir, "LOOM-FORMAT.tmp", "loom-br") }},
		{"marker, no database", func(tb testing.TB, dir string) { mustWrite(tb, dir, "LOOM-FORMAT", creating) }},
		{"database, old marker", func(tb testing.TB, dir string) {
			mustStore(tb, dir)
			mustWrite(tb, dir, "LOOM-FORMAT", creating)
		}},
		{"some column families", func(tb testing.TB, dir string) {
			makeDefaultOnly(tb, dir)
			mustWrite(tb, dir, "LOOM-FORMAT", creating)
			mustWrite(tb, dir, "LOOM-FORMAT.tmp", readyMarker)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.make(t, dir)
			db := mustOpen(t, dir, nil)
			for _, ks := range kv.Keyspaces() {
				mustCommit(t, db, kv.Commit{Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: ks, Scope: scopeA}, Any: true}}})
			}
			if got := files(t, dir)[filepath.Join(dir, "LOOM-FORMAT")]; got != readyMarker {
				t.Errorf("marker = %q, want %q", got, readyMarker)
			}
		})
	}
}

// TestOpenNeverCompletes wants a ready store that lacks a keyspace refused:
// making the keyspace anew would hide that its data is gone.
func TestOpenNeverCompletes(t *testing.T) {
	dir := t.TempDir()
	makeDefaultOnly(t, dir)
	mustWrite(t, dir, "LOOM-FORMAT", readyMarker)
	wantOpenError(t, dir, kv.ErrDamaged)
}

func TestOptions(t *testing.T) {
	for _, opts := range []rockskv.Options{
		{Durability: -1},
		{Durability: 3},
		{WriteBufferBytes: rockskv.MinWriteBufferBytes - 1},
		{WriteBufferBytes: -1},
		{BlockCacheBytes: -1},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		if _, err := rockskv.Open(dir, &opts); !errors.Is(err, rockskv.ErrOptions) {
			t.Errorf("open with %+v: error %v, want ErrOptions", opts, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open with %+v made the directory", opts)
		}
	}
	mustOpen(t, t.TempDir(), &rockskv.Options{WriteBufferBytes: rockskv.MinWriteBufferBytes, BlockCacheBytes: 1 << 20})
}

func TestParseDurability(t *testing.T) {
	for _, d := range []rockskv.Durability{rockskv.Sync, rockskv.WAL, rockskv.None} {
		if got, err := rockskv.ParseDurability(d.String()); got != d || err != nil {
			t.Errorf("parse %q = %v, %v", d, got, err)
		}
	}
	for _, name := range []string{"", "Sync", "fast"} {
		if _, err := rockskv.ParseDurability(name); !errors.Is(err, rockskv.ErrOptions) {
			t.Errorf("parse %q: error %v, want ErrOptions", name, err)
		}
	}
}
