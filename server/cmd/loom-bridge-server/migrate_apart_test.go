package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// A store is not copied onto itself, nor into itself, nor around itself, by whatever path.
//
// Z20
func TestMigrateApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	must(t, os.Mkdir(store, 0o700))
	must(t, os.Symlink(store, filepath.Join(dir, "link")))
	for to, want := range map[string]string{
		"store": "is the store itself", "store/../link": "is the store itself", "store/sub": "lies within", "link/a/b": "lies within", ".": "has within it",
	} {
		_, err := loomCommand(t, "migrate", "--from", "rocksdb:"+store, "--to", "rocksdb:"+dir+"/"+to)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to %s: %v", to, err)
		}
	}
	if left, err := os.ReadDir(store); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A store that a server has open is not copied, and the error names the process, as far as the
// system tells.
func TestMigrateNamesWhoHasTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	MustRun(t, dir)
	store := filepath.Join(dir, "store")
	_, err := loomCommand(t, "migrate", "--from", "rocksdb:"+store, "--to", "rocksdb:"+filepath.Join(dir, "other"))
	if holder, told := holderOf(store); !errors.Is(err, kv.ErrLocked) || told && !strings.Contains(err.Error(), holder+" has it") {
		t.Errorf("migrate what is served: %v", err)
	}
}
