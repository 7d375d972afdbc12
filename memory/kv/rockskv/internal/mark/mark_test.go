package mark_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/mark"
)

func random(r *rand.Rand, logs int) mark.Mark {
	file := func() mark.File { return mark.File{Number: r.Uint64() >> 1, Length: r.Int64()} }
	m := mark.Mark{Manifest: file()}
	for range logs {
		m.Logs = append(m.Logs, file())
	}
	return m
}

func mustCreate(tb testing.TB, dir string, m mark.Mark) *mark.Writer {
	tb.Helper()
	w, err := mark.Create(dir, m)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.Close() })
	return w
}

func wantMark(tb testing.TB, dir string, want mark.Mark) {
	tb.Helper()
	got, err := mark.Read(dir)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		tb.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTheNewestMarkCounts(t *testing.T) {
	dir := t.TempDir()
	if _, err := mark.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	m := random(r, 0)
	w := mustCreate(t, dir, m)
	wantMark(t, dir, m)
	for n := range 20 {
		m = random(r, n)
		write := w.Sync
		if n%3 > 0 {
			write = w.Note
		}
		if err := write(m); err != nil {
			t.Fatal(err)
		}
		wantMark(t, dir, m)
	}
	m = random(r, mark.MaxLogs+5)
	if err := w.Sync(m); err != nil {
		t.Fatal(err)
	}
	m.Logs = m.Logs[5:]
	wantMark(t, dir, m)
	mustCreate(t, dir, mark.Mark{})
	wantMark(t, dir, mark.Mark{})
}

// TestTornSlot spoils the slot that was written last: the mark before counts.
func TestTornSlot(t *testing.T) {
	const slot = 4096
	for _, spoil := range []func([]byte){
		func(b []byte) { clear(b) },
		func(b []byte) { b[25] ^= 1 },
		func(b []byte) { clear(b[40:]) },
	} {
		dir := t.TempDir()
		r := rand.New(rand.NewPCG(3, 4))
		before := random(r, 3)
		w := mustCreate(t, dir, before)
		if err := w.Sync(random(r, 3)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, mark.Name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spoil(data[slot : 2*slot])
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		wantMark(t, dir, before)
		spoil(data[:slot])
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := mark.Read(dir); !errors.Is(err, mark.ErrBad) {
			t.Errorf("with both slots spoiled: %v", err)
		}
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	w, err := mark.Create(dir, mark.Mark{Manifest: mark.File{Number: 4, Length: 99}, Logs: []mark.File{{Number: 5, Length: 6}}})
	if err != nil {
		f.Fatal(err)
	}
	w.Close()
	data, err := os.ReadFile(filepath.Join(dir, mark.Name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, mark.Name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := mark.Read(dir)
		if err == nil {
			mustCreate(t, dir, m)
			wantMark(t, dir, m)
		}
	})
}
