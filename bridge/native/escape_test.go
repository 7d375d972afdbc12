package native_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

const (
	traversal = "Permission denied: Path traversal detected"
	ownStore  = "Permission denied: the store's own directory"
)

// TestEscapesAreRefused tries every tool with every path that leads where no
// tool may go, and looks at the whole disk around the workspace afterwards.
func TestEscapesAreRefused(t *testing.T) {
	b := MustBench(t, map[string]string{"a/file": "inside", "b/c/file": "inside"}, nil)
	b.link("../outside/secret", "file-out")
	b.link("../outside", "dir-out")
	b.link("/etc/passwd", "absolute-out")
	b.link("dir-out", "chain-out")
	b.link("a/../../outside/secret", "detour-out")
	b.link("../../outside", "a/deep-out")
	b.link("/proc/self/root/etc", "proc-out")
	b.link(".loom/store", "to-store")
	b.link("to-store", "chain-to-store")
	b.link(filepath.Join(b.dir, ".loom/store"), "absolute-to-store")
	b.link(".loom", "to-loom")
	b.link("loop-b", "loop-a")
	b.link("loop-a", "loop-b")
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.link("/dev/zero", "device-out")
	b.link("pipe", "to-pipe")

	const (
		denied = tools.PermissionDenied
		failed = tools.Failed
	)
	tests := []struct {
		name, path string
		code       tools.Code
		message    string
	}{
		{"parent", "../outside/secret", denied, traversal},
		{"parent alone", "..", denied, traversal},
		{"down and up", "a/../../outside/secret", denied, traversal},
		{"far up", strings.Repeat("../", 40) + "etc/passwd", denied, traversal},
		{"up behind dots", "./a/./.././../outside/secret", denied, traversal},
		{"absolute", "/etc/passwd", denied, traversal},
		{"root", "/", denied, traversal},
		{"absolute with the workspace as a prefix", b.dir + "-other/file", denied, traversal},
		{"absolute through the workspace", b.dir + "/../outside/secret", denied, traversal},
		{"proc root", "/proc/self/root/etc/passwd", denied, traversal},
		{"proc cwd", "/proc/self/cwd/walk.go", denied, traversal},
		{"link to a file", "file-out", denied, traversal},
		{"link to a folder", "dir-out/secret", denied, traversal},
		{"link to a folder itself", "dir-out", denied, traversal},
		{"link to a folder with a slash", "dir-out/", denied, traversal},
		{"absolute link", "absolute-out", denied, traversal},
		{"chain of links", "chain-out/secret", denied, traversal},
		{"link with a detour", "detour-out", denied, traversal},
		{"link in a folder", "a/deep-out/secret", denied, traversal},
		{"link to proc", "proc-out/passwd", denied, traversal},
		{"link to a device", "device-out", denied, traversal},
		{"the store", ".loom/store", denied, ownStore},
		{"the store with a slash", ".loom/store/", denied, ownStore},
		{"in the store", ".loom/store/CURRENT", denied, ownStore},
		{"new in the store", ".loom/store/new", denied, ownStore},
		{"the store with dots", "./.loom//a/../store/./CURRENT", denied, ownStore},
		{"the store, absolute", filepath.Join(b.dir, ".loom/store/CURRENT"), denied, ownStore},
		{"the store by a link", "to-store/CURRENT", denied, ownStore},
		{"the store by a link to itself", "to-store", denied, ownStore},
		{"the store by two links", "chain-to-store/CURRENT", denied, ownStore},
		{"the store by an absolute link", "absolute-to-store/CURRENT", denied, ownStore},
		{"the store by a linked parent", "to-loom/store/CURRENT", denied, ownStore},
		{"NUL", "a/file\x00.txt", failed, "path holds a NUL byte"},
		{"long path", strings.Repeat("a/", 3000) + "x", tools.TooLarge, "path of 6001 bytes exceeds the limit of 4096"},
		{"long name", "new/" + strings.Repeat("x", 256), tools.TooLarge, "a name of 256 bytes in the path exceeds the limit of 255"},
		{"loop of links", "loop-a", failed, "loop-a: too many levels of symbolic links"},
		{"loop in the middle", "loop-a/x", failed, "loop-a/x: too many levels of symbolic links"},
	}
	calls := []struct {
		tool string
		more args
	}{
		{"fs:read_file", nil},
		{"fs:read_file", args{"offset": 1}},
		{"fs:write_file", args{"content": "broken in"}},
		{"fs:write_file", args{"content": "broken in", "append": true}},
		{"fs:list_dir", nil},
		{"fs:search", args{"query": "o"}},
		{"fs:delete", nil},
		{"fs:stat", nil},
	}
	before := b.names()
	for _, tt := range tests {
		for _, call := range calls {
			t.Run(fmt.Sprintf("%s/%s%d", tt.name, call.tool, len(call.more)), func(t *testing.T) {
				a := args{"path": tt.path}
				for k, v := range call.more {
					a[k] = v
				}
				_, err := b.try(call.tool, a)
				wantFailure(t, err, tt.code, tt.message)
			})
		}
	}
	if diff := cmp.Diff(before, b.names()); diff != "" {
		t.Errorf("the refused calls changed the disk (-before +after):\n%s", diff)
	}
}

func TestOtherSpellingsOfTheStoreAreOtherFiles(t *testing.T) {
	b := MustBench(t, nil, nil)
	for _, name := range []string{".LOOM/store/CURRENT", ".loom/STORE/CURRENT", ".loom/store\u200b/CURRENT", ".loom/store /CURRENT"} {
		_, err := b.try("fs:read_file", args{"path": name})
		wantFailure(t, err, tools.NotFound, "File not found: "+name)
	}
	if got := b.must("fs:write_file", args{"path": ".loom/cache/file_read/x.txt", "content": "kept"}); got["success"] != true {
		t.Errorf("the cache beside the store: got %v", got)
	}
	if got := b.must("fs:read_file", args{"path": ".loom/cache/file_read/x.txt"}); got["content"] != "kept" {
		t.Errorf("the cache beside the store: got %v", got)
	}
}

func TestPathsInsideAreAccepted(t *testing.T) {
	b := MustBench(t, map[string]string{"a/b/file": "inside"}, nil)
	b.link("a/b", "dir-in")
	b.link("../a/b/file", "a/file-in")
	b.link("b/../../a/b/..", "a/down-and-up")
	b.link(filepath.Join(b.dir, "a"), "absolute-in")
	elsewhere := filepath.Join(filepath.Dir(b.dir), "elsewhere")
	if err := os.Symlink(b.dir, elsewhere); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	b.root = root
	for _, path := range []string{
		"a/b/file", "./a//b/file", "a/x/../b/file", "dir-in/file", "a/file-in", "absolute-in/b/file", "a/down-and-up/b/file",
		filepath.Join(b.dir, "a/b/file"), filepath.Join(elsewhere, "dir-in/file"),
	} {
		if got, err := b.try("fs:read_file", args{"path": path}); err != nil || got["content"] != "inside" {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
	}
}

func TestPipesAndDevicesDoNotHang(t *testing.T) {
	b := MustBench(t, nil, nil)
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.link("pipe", "to-pipe")
	for _, path := range []string{"pipe", "to-pipe"} {
		for tool, more := range map[string]args{
			"fs:read_file": {}, "fs:write_file": {"content": "x"}, "fs:search": {"query": "x"},
		} {
			more["path"] = path
			_, err := b.try(tool, more)
			wantFailure(t, err, tools.Failed, "not a regular file: pipe")
		}
		more := args{"path": path, "content": "x", "append": true}
		_, err := b.try("fs:write_file", more)
		wantFailure(t, err, tools.Failed, "not a regular file: pipe")
	}
	if got := matchLines(b.must("fs:search", args{"query": "own"})); got != nil {
		t.Errorf("search over a folder with a pipe: got %v", got)
	}
}

// raceTime is how long each race is tried.
const raceTime = 300 * time.Millisecond

// TestRacesDoNotEscape swaps a folder of the path for links that lead out and
// into the store, while the tools walk over it.
func TestRacesDoNotEscape(t *testing.T) {
	b := MustBench(t, map[string]string{"swap/secret": "inside", "swap/CURRENT": "inside"}, nil)
	b.link("../outside", "out")
	b.link(".loom/store", "store")
	swap := filepath.Join(b.dir, "swap")
	stop := make(chan struct{})
	swapped := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				swapped <- n
				return
			default:
			}
			// Each turn puts a link where the folder was, and the folder back.
			link := filepath.Join(b.dir, []string{"out", "store"}[n%2])
			_ = os.Rename(swap, swap+"-real")
			_ = os.Rename(link, swap)
			_ = os.Rename(swap, link)
			_ = os.Rename(swap+"-real", swap)
		}
	}()
	served, refused := 0, 0
	for end := time.Now().Add(raceTime); time.Now().Before(end); {
		for _, call := range []struct {
			tool string
			args args
		}{
			{"fs:read_file", args{"path": "swap/secret"}},
			{"fs:read_file", args{"path": "swap/CURRENT"}},
			{"fs:write_file", args{"path": "swap/written", "content": "broken in"}},
			{"fs:write_file", args{"path": "swap/secret", "content": "inside", "append": false}},
			{"fs:list_dir", args{"path": "swap"}},
			{"fs:search", args{"path": ".", "query": "own"}},
			{"fs:delete", args{"path": "swap/written"}},
			{"fs:stat", args{"path": "swap/secret"}},
		} {
			out, err := b.try(call.tool, call.args)
			if err != nil {
				refused++
				if _, ok := errors.AsType[*tools.Error](err); !ok {
					t.Fatalf("%s: untyped error %v", call.tool, err)
				}
				continue
			}
			served++
			if content, ok := out["content"]; ok && content != "inside" {
				t.Fatalf("%s %v: read %q", call.tool, call.args, content)
			}
			if call.tool == "fs:search" && len(matchLines(out)) > 0 {
				t.Fatalf("search saw the store: %v", out)
			}
		}
	}
	close(stop)
	t.Logf("%d swaps, %d calls served, %d refused", <-swapped, served, refused)
	if got, err := os.ReadDir(b.outside); err != nil || len(got) != 1 {
		t.Errorf("outside holds %v, %v", got, err)
	}
	if got := b.get("../outside/secret"); got != "outside" {
		t.Errorf("the file outside is %q now", got)
	}
	if got, err := os.ReadDir(filepath.Join(b.dir, ".loom/store")); err != nil || len(got) != 1 {
		t.Errorf("the store holds %v, %v", got, err)
	}
	if served == 0 || refused == 0 {
		t.Logf("the race was not met: %d served, %d refused", served, refused)
	}
}

func TestListHidesTheStore(t *testing.T) {
	b := MustBench(t, nil, nil)
	out := b.must("fs:list_dir", args{"path": ".loom"})
	if got := entryNames(out); got != nil {
		t.Errorf("the store is listed: %v", got)
	}
}
