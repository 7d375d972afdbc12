package native_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func TestRegister(t *testing.T) {
	r := tools.NewRegistry(nil)
	if err := native.Register(r, nil); err != nil {
		t.Fatal(err)
	}
	mutates := map[string]bool{}
	for _, d := range r.List() {
		mutates[d.Name] = d.Mutates
		if d.Level != tools.LevelFunction || d.Category != "file" || d.RequiresApproval {
			t.Errorf("%s: level %d, category %q, approval %v", d.Name, d.Level, d.Category, d.RequiresApproval)
		}
	}
	want := map[string]bool{
		"fs:delete": true, "fs:edit_file": true, "fs:list_dir": false, "fs:read_file": false,
		"fs:search": false, "fs:stat": false, "fs:write_file": true,
	}
	if diff := cmp.Diff(want, mutates); diff != "" {
		t.Errorf("tools and whether they mutate (-want +got):\n%s", diff)
	}
	if err := native.Register(r, nil); err == nil {
		t.Error("a second Register in one registry: want an error")
	}
	if err := native.Register(tools.NewRegistry(nil), &native.Options{Store: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a store that is not there: want an error")
	}
}
