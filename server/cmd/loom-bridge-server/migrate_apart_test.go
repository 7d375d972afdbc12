package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
