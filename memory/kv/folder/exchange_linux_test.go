package folder_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// Two directories change places with what is in them; one that is missing leaves the other.
func TestExchange(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for _, dir := range []string{a, b} {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, filepath.Base(dir)), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(a, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(folder.Like(b, a), folder.Exchange(a, b)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(a, "b")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(a); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("rights of the one that is like the other: %v, %v", info.Mode(), err)
	}
	if err := folder.Exchange(a, b+"-none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with one that is missing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(a, "b")); err != nil {
		t.Error(err)
	}
}
