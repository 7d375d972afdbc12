package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func TestWriteFile(t *testing.T) {
	b := MustBench(t, map[string]string{"old": "long old content", "dir/x": "x", "script": "#!"}, nil)
	b.link("old", "to-old")
	b.link("later", "to-later")
	if err := os.Chmod(filepath.Join(b.dir, "script"), 0o750); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		args    args
		written int64
		file    string
		want    string
	}{
		{"new", args{"path": "new", "content": "héllo"}, 6, "new", "héllo"},
		{"new folders", args{"path": "p/q/r", "content": "x"}, 1, "p/q/r", "x"},
		{"replace", args{"path": "old", "content": "new"}, 3, "old", "new"},
		{"empty", args{"path": "dir/x", "content": ""}, 0, "dir/x", ""},
		{"append", args{"path": "old", "content": "er", "append": true}, 2, "old", "newer"},
		{"append to nothing", args{"path": "log", "content": "1", "append": true}, 1, "log", "1"},
		{"append null", args{"path": "log", "content": "2", "append": nil}, 1, "log", "2"},
		{"through a link", args{"path": "to-old", "content": "linked"}, 6, "old", "linked"},
		{"through a link to nothing yet", args{"path": "to-later", "content": "later"}, 5, "later", "later"},
		{"keeps the mode", args{"path": "script", "content": "#!/bin/sh"}, 9, "script", "#!/bin/sh"},
		{"absolute", args{"path": filepath.Join(b.dir, "abs"), "content": "x"}, 1, "abs", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := b.must("fs:write_file", tt.args)
			want := map[string]any{"success": true, "path": tt.args["path"], "bytes_written": tt.written}
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if got := b.get(tt.file); got != tt.want {
				t.Errorf("%s holds %q, want %q", tt.file, got, tt.want)
			}
		})
	}
	info, err := os.Stat(filepath.Join(b.dir, "script"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	for name := range b.names() {
		if strings.Contains(name, ".loom-tmp-") {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestWriteFileRefuses(t *testing.T) {
	b := MustBench(t, map[string]string{"dir/x": "x"}, nil)
	before := b.names()
	_, err := b.try("fs:write_file", args{"path": "dir", "content": "x"})
	wantFailure(t, err, tools.Failed, "dir: is a directory")
	_, err = b.try("fs:write_file", args{"path": "new/", "content": "x"})
	wantFailure(t, err, tools.Failed, "new/: is a directory")
	_, err = b.try("fs:write_file", args{"path": ".", "content": "x"})
	wantFailure(t, err, tools.Failed, ".: is a directory")
	_, err = b.try("fs:write_file", args{"path": "dir/x/y", "content": "x"})
	wantFailure(t, err, tools.NotFound, "File not found: dir/x/y")
	if diff := cmp.Diff(before, b.names()); diff != "" {
		t.Errorf("the disk changed (-before +after):\n%s", diff)
	}
}

func TestWritesToOnePathDoNotMix(t *testing.T) {
	b := MustBench(t, nil, nil)
	contents := map[string]bool{}
	for i := range 8 {
		contents[strings.Repeat(fmt.Sprint(i), 50_000)] = true
	}
	var all sync.WaitGroup
	for content := range contents {
		all.Go(func() {
			for range 10 {
				if _, err := b.try("fs:write_file", args{"path": "whole", "content": content}); err != nil {
					t.Error(err)
				}
				if got, err := b.try("fs:read_file", args{"path": "whole"}); err != nil || !contents[got["content"].(string)] {
					t.Errorf("read a mixture or nothing: %v", err)
				}
				if _, err := b.try("fs:write_file", args{"path": "log", "content": "line\n", "append": true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, want := b.get("log"), strings.Repeat("line\n", 80); got != want {
		t.Errorf("the log has %d bytes, want %d", len(got), len(want))
	}
}

func TestDelete(t *testing.T) {
	b := MustBench(t, map[string]string{"a": "a", "full/x": "x", "dir/x": "x"}, nil)
	if err := os.Mkdir(filepath.Join(b.dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.link("full/x", "to-x")
	b.link("nothing", "dangling")
	for _, tt := range []struct {
		path string
		dir  bool
	}{{"a", false}, {"empty/", true}, {"to-x", false}} {
		want := map[string]any{"success": true, "path": tt.path, "was_directory": tt.dir}
		if diff := cmp.Diff(want, b.must("fs:delete", args{"path": tt.path})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
		if _, err := os.Lstat(filepath.Join(b.dir, tt.path)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", tt.path, err)
		}
	}
	if got := b.get("full/x"); got != "x" {
		t.Errorf("deleting a link changed its target to %q", got)
	}
	before := b.names()
	for path, want := range map[string]tools.Error{
		"missing":  {Code: tools.NotFound, Message: "File not found: missing"},
		"dangling": {Code: tools.NotFound, Message: "File not found: dangling"},
		"full":     {Code: tools.Failed, Message: "full: directory not empty"},
		"full/x/":  {Code: tools.NotFound, Message: "File not found: full/x/"},
		".":        {Code: tools.PermissionDenied, Message: "Permission denied: . is the workspace itself"},
		"full/..":  {Code: tools.PermissionDenied, Message: "Permission denied: full/.. is the workspace itself"},
		".loom":    {Code: tools.Failed, Message: ".loom: directory not empty"},
	} {
		_, err := b.try("fs:delete", args{"path": path})
		wantFailure(t, err, want.Code, want.Message)
	}
	if diff := cmp.Diff(before, b.names()); diff != "" {
		t.Errorf("the disk changed (-before +after):\n%s", diff)
	}
}

func TestStat(t *testing.T) {
	b := MustBench(t, map[string]string{"a": "hello"}, nil)
	b.link("a", "to-a")
	when := "2024-05-06T07:08:09.123456789Z"
	MustTime(t, filepath.Join(b.dir, "a"), when)
	want := map[string]any{
		"path": "to-a", "is_dir": false, "size": int64(5), "modified_time": when, "mode": "-rw-r--r--",
		"sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
	}
	if diff := cmp.Diff(want, b.must("fs:stat", args{"path": "to-a"})); diff != "" {
		t.Errorf("a file (-want +got):\n%s", diff)
	}
	dir := b.must("fs:stat", args{"path": "."})
	if _, hashed := dir["sha256"]; dir["is_dir"] != true || hashed {
		t.Errorf("a folder: got %v", dir)
	}
	MustSparse(t, b, "huge", 1<<30)
	if huge := b.must("fs:stat", args{"path": "huge"}); huge["size"] != int64(1<<30) || huge["sha256"] != nil {
		t.Errorf("a huge file: got %v", huge)
	}
	_, err := b.try("fs:stat", args{"path": "missing"})
	wantFailure(t, err, tools.NotFound, "File not found: missing")
}
