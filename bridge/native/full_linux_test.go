package native_test

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// MustLimitFiles lets no file of this process grow beyond a size, until the test
// ends. To a tool that looks like a disk which is full in the middle of a write.
func MustLimitFiles(tb testing.TB, size uint64) {
	tb.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		tb.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		signal.Reset(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			tb.Error(err)
		}
	})
}

// inChild runs the test again in a process of its own and reports whether this is
// that process. The go command keeps a log in a file that the limit must not
// hit.
func inChild(t *testing.T) bool {
	t.Helper()
	const mark = "LOOM_TEST_CHILD"
	if os.Getenv(mark) != "" {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), mark+"=1")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func TestFullDiskLeavesFilesWhole(t *testing.T) {
	if !inChild(t) {
		return
	}
	const room = 100_000
	old := strings.Repeat("old", room/6)
	b := MustBench(t, map[string]string{"file": old}, nil)
	before := b.names()
	MustLimitFiles(t, room)
	content := strings.Repeat("x", room+1)
	for _, a := range []args{
		{"path": "file", "content": content},
		{"path": "file", "content": content, "append": true},
		{"path": "new", "content": content},
		{"path": "new", "content": content, "append": true},
	} {
		_, err := b.try("fs:write_file", a)
		wantFailure(t, err, tools.Failed, a["path"].(string)+": file too large")
	}
	if got := b.get("file"); got != old {
		t.Errorf("the file has %d bytes now, %d before", len(got), len(old))
	}
	if diff := cmp.Diff(before, b.names()); diff != "" {
		t.Errorf("the disk changed (-before +after):\n%s", diff)
	}
}
