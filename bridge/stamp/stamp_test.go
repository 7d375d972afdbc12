package stamp_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/stamp"
)

// A file keeps its stamp until it is written to, replaced or gets its old times back.
func TestOf(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	write := func(at, text string) {
		t.Helper()
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look := func() stamp.Stamp {
		t.Helper()
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		return stamp.Of(info)
	}
	write(name, "one")
	old, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	before := look()
	if before == (stamp.Stamp{}) || before != look() {
		t.Fatalf("an unchanged file: %v, then %v", before, look())
	}
	// The clock of the file system ticks first: until a new file has a later time.
	for other := name + ".clock"; ; {
		write(other, "tick")
		if info, err := os.Lstat(other); err != nil {
			t.Fatal(err)
		} else if info.ModTime().After(old.ModTime()) {
			break
		}
	}
	for _, tt := range []struct {
		name   string
		change func() error
	}{
		{"written, as long, with its old times", func() error {
			write(name, "two")
			return os.Chtimes(name, time.Time{}, old.ModTime())
		}},
		{"replaced by another", func() error {
			write(name+".new", "two")
			return os.Rename(name+".new", name)
		}},
		{"longer", func() error { return os.Truncate(name, 9) }},
		{"a link", func() error {
			if err := os.Remove(name); err != nil {
				return err
			}
			return os.Symlink("elsewhere", name)
		}},
	} {
		was := look()
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		if look() == was {
			t.Errorf("%s: the stamp is the same", tt.name)
		}
	}
}
