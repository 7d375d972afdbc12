package folder_test

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// One open of a directory has its lock, until it gives it up.
func TestLock(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("locks are tested where they are known to be")
	}
	dir := t.TempDir()
	open := func() *os.File {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	if err := folder.Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := folder.Lock(second); !errors.Is(err, folder.ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	// Somebody who has the same open, as a child has for a moment, does not keep it.
	if err := folder.Unlock(first); err != nil {
		t.Fatal(err)
	}
	if err := folder.Lock(second); err != nil {
		t.Errorf("after the first was given up: %v", err)
	}
	if err := errors.Join(folder.Unlock(second), folder.Sync(dir)); err != nil {
		t.Error(err)
	}
	if err := folder.Sync(dir + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
