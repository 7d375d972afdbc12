package paths_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/paths"
)

// What is counted may grow by a tenth and a little; CPU is for people. A path without
// figures is named.
func TestOver(t *testing.T) {
	book := paths.Book{"save": {CPU: 1, Allocations: 10_000, Bytes: 1 << 20, Reads: 100, Keys: 100, Scans: 100, Pairs: 100, Syncs: 1, Written: 1 << 20}}
	file := filepath.Join(t.TempDir(), "paths.json")
	if err := book.Write(file); err != nil {
		t.Fatal(err)
	}
	before, err := paths.Read(file)
	if err != nil || !reflect.DeepEqual(before, book) {
		t.Fatalf("read %v, %v", before, err)
	}
	for name, c := range map[string]struct {
		change func(f *paths.Figures)
		lines  int
	}{
		"the same":         {func(*paths.Figures) {}, 0},
		"more CPU":         {func(f *paths.Figures) { f.CPU = 100 }, 0},
		"a tenth":          {func(f *paths.Figures) { f.Allocations, f.Reads = 11_000, 110 }, 0},
		"more allocations": {func(f *paths.Figures) { f.Allocations = 11_300 }, 1},
		"a sync more":      {func(f *paths.Figures) { f.Syncs = 2 }, 1},
		"more of two":      {func(f *paths.Figures) { f.Reads, f.Pairs = 111, 112 }, 2},
	} {
		now := book["save"]
		c.change(&now)
		if lines := (paths.Book{"save": now}).Over(before); len(lines) != c.lines {
			t.Errorf("%s: %q", name, lines)
		}
	}
	if lines := (paths.Book{"query": {}}).Over(before); len(lines) != 1 {
		t.Errorf("a new path: %q", lines)
	}
}
