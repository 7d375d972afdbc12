package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// files is a store whose checkpoint has these files.
type files map[string]string

func (f files) Checkpoint(_ context.Context, dir string) error {
	err := os.Mkdir(dir, 0o700)
	for name, content := range f {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return err
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func sourceIn(tb testing.TB, store files) Origin {
	return Origin{Engine: store, Staging: filepath.Join(tb.TempDir(), "staging"), StoreFormat: 4, Version: "1"}
}

func listed(tb testing.TB, f *Folder) (names []string) {
	tb.Helper()
	all, err := f.List()
	must(tb, err)
	for _, b := range all {
		names = append(names, b.Name)
	}
	return names
}

// What ended processes leave goes with the next backup; what is not of this package stays.
func TestLeftoversGo(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir)
	must(t, err)
	for _, gone := range []string{"20260101T000000.000Z.partial", "20260102T000000.000Z"} {
		must(t, os.Mkdir(filepath.Join(dir, gone), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, gone, "000001.sst"), nil, 0o400))
	}
	must(t, os.WriteFile(filepath.Join(dir, "20260102T000000.000Z.json.partial"), []byte("{"), 0o400))
	for _, kept := range []string{"holiday.partial", "notes.json", "20260102"} {
		must(t, os.WriteFile(filepath.Join(dir, kept), []byte("mine"), 0o600))
	}
	s := sourceIn(t, files{"CURRENT": "a"})
	must(t, os.MkdirAll(filepath.Join(s.Staging, "old"), 0o700))
	made, err := f.Create(t.Context(), s, Plan{})
	must(t, err)
	entries, err := os.ReadDir(dir)
	must(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{"20260102", made.Name, made.Name + ".json", "holiday.partial", "lock", "notes.json"}
	if !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
	if _, err := os.Stat(s.Staging); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the checkpoint is still there: %v", err)
	}
}

// A backup that fails or is given up leaves nothing, and those before stay.
func TestFailedBackupLeavesNothing(t *testing.T) {
	f, err := Open(t.TempDir())
	must(t, err)
	s := sourceIn(t, files{"000001.sst": "table", "CURRENT": "a"})
	_, err = f.Create(t.Context(), s, Plan{})
	must(t, err)
	before := listed(t, f)
	ctx, stop := context.WithCancel(t.Context())
	_, err = f.Create(ctx, s, Plan{Full: true, Progress: func(int64, int64) { stop() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	s.Engine = broken{}
	if _, err := f.Create(t.Context(), s, Plan{}); !errors.Is(err, errBroken) {
		t.Errorf("a store that fails: %v", err)
	}
	entries, err := os.ReadDir(f.dir)
	must(t, err)
	if !slices.Equal(listed(t, f), before) || len(entries) != 3 {
		t.Errorf("left %v", entries)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Checkpoint(context.Context, string) error { return errBroken }

// Backups of one moment have names of their own, one is made at a time, and the newest stay.
func TestNamesAndKeep(t *testing.T) {
	f, err := Open(t.TempDir())
	must(t, err)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := sourceIn(t, files{"CURRENT": "a"})
	s.Now = func() time.Time { return at }
	for range 4 {
		_, err := f.Create(t.Context(), s, Plan{Keep: 3})
		must(t, err)
	}
	want := []string{"20260102T030405.003Z", "20260102T030405.002Z", "20260102T030405.001Z"}
	if got := listed(t, f); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	lock, err := f.lock()
	must(t, err)
	_, err = f.Create(t.Context(), s, Plan{})
	_, pruneErr := f.Prune(1)
	if !errors.Is(err, ErrBusy) || !errors.Is(pruneErr, ErrBusy) {
		t.Errorf("beside another one: %v, %v", err, pruneErr)
	}
	must(t, folder.Unlock(lock))
}

// Nothing is restored over what is somebody's: files, full directories, links.
func TestRestoreReplacesNothing(t *testing.T) {
	f, err := Open(t.TempDir())
	must(t, err)
	made, err := f.Create(t.Context(), sourceIn(t, files{"CURRENT": "a"}), Plan{})
	must(t, err)
	dir := t.TempDir()
	file, link, full, empty := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "full"), filepath.Join(dir, "empty")
	must(t, errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(dir, link), os.MkdirAll(filepath.Join(full, "x"), 0o700), os.Mkdir(empty, 0o700)))
	for _, to := range []string{file, link, full} {
		if _, err := f.Restore(t.Context(), made.Name, to, nil); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: %v", to, err)
		}
		if _, err := os.Lstat(to); err != nil {
			t.Errorf("%s is gone: %v", to, err)
		}
	}
	for _, to := range []string{empty, filepath.Join(dir, "new", "place")} {
		if _, err := f.Restore(t.Context(), made.Name, to, nil); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, name := range []string{"", "..", "20260102T030405.003Z", "../" + made.Name} {
		if _, err := f.Restore(t.Context(), name, filepath.Join(dir, "other"), nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("restore of %q: %v", name, err)
		}
	}
}

// A Keeper goes on where the server before left off.
func TestKeeperIsDue(t *testing.T) {
	f, err := Open(t.TempDir())
	must(t, err)
	s := sourceIn(t, files{"CURRENT": "a"})
	for i, tt := range []struct {
		age, every, want time.Duration
	}{
		{time.Hour, 24 * time.Hour, 23 * time.Hour},
		{48 * time.Hour, 24 * time.Hour, 0},
		{-48 * time.Hour, 24 * time.Hour, 24 * time.Hour}, // the clock was put back
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			k := &Keeper{folder: f, source: s, options: KeeperOptions{Every: tt.every}}
			k.report.Last.Time = time.Now().Add(-tt.age)
			if due := k.due(); due > tt.want || due < tt.want-time.Minute {
				t.Errorf("due in %v, want %v", due, tt.want)
			}
		})
	}
}
