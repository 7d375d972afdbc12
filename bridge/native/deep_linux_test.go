package native_test

import (
	"strings"
	"syscall"
	"testing"
)

// MustOpenAtMost lets this process open that many files until the test ends.
func MustOpenAtMost(tb testing.TB, files uint64) {
	tb.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		tb.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: before.Max}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
}

// However deep a path goes, a call leaves the file handles to the store.
func TestDeepPathsHoldFewFiles(t *testing.T) {
	b := MustBench(t, nil, nil)
	deep := strings.Repeat("d/", 1000)
	MustOpenAtMost(t, 64)
	b.must("fs:write_file", args{"path": deep + "x", "content": "deep"})
	if got := b.must("fs:read_file", args{"path": deep + "x"})["content"]; got != "deep" {
		t.Errorf("read %q", got)
	}
	b.must("fs:list_dir", args{"path": deep})
	b.must("fs:stat", args{"path": deep + "x"})
	if out := b.must("fs:search", args{"path": deep, "query": "deep"}); out["count"] != int64(1) {
		t.Errorf("search found %v", out["count"])
	}
	b.must("fs:delete", args{"path": deep + "x"})
}
