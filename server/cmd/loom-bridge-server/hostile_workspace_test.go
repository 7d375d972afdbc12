package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// hostileTree makes what a workspace should not have. argv: a file outside.
const hostileTree = `
import os, socket, sys
os.mkfifo("pipe")
os.symlink("loop", "loop")
os.symlink(sys.argv[1], "out")
os.symlink("/proc/self/environ", "environ")
os.symlink("/dev/zero", "zero")
os.symlink("..", "up")
os.mkdir("locked"); open("locked/f", "w").close(); os.chmod("locked", 0)
for name in (b"n" * 255, b"bad\xff\xfe", b"new\nline", b"\x1b]0;title\x07\x1b[2J", b"-rf", b"a b'\"$(id)", "\u202egnp.exe".encode(), "\u2066a\u2069".encode(), "t\U000e0069ag".encode()):
    open(name, "wb").write(b"\xff\x00\x1b[31mred")
try:
    s = socket.socket(socket.AF_UNIX); s.bind("sock")
except OSError:
    pass
open("script.py", "wb").write(b"\xff\xfe\x00")
here = os.getcwd()
for i in range(1500):
    os.mkdir("d"); os.chdir("d")
os.chdir(here)
print("made")
`

// File tools work on whatever a program left in the workspace: each call is answered in time,
// with text or a typed error, nothing outside is read or written, and no descriptor stays.
func TestHostileWorkspaceSoak(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("kept outside"), 0o600))
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--workspace", t.TempDir())
	w := &shellWorld{t, p, ""}
	if s := w.status().GetSandbox(); s.GetTier() == "" {
		t.Skipf("this machine has no tier: %v", s.GetProblems())
	}
	w.put("make.py", hostileTree)
	if got := w.callAs("a", "s1", "system:shell", object{"command": "python3", "args": []string{"make.py", outside}}); !strings.Contains(saidOf(got), "made") {
		t.Fatalf("it made nothing: %v", got)
	}
	must(t, os.WriteFile(filepath.Join(w.Workspace, "sparse"), nil, 0o644))
	sparse := os.Truncate(filepath.Join(w.Workspace, "sparse"), 1<<40) // not every file system has it
	device := syscall.Mknod(filepath.Join(w.Workspace, "device"), syscall.S_IFCHR|0o666, 1<<8|5)
	t.Logf("1 TiB of nothing: %v; a device: %v", sparse, device)

	deep := strings.Repeat("d/", 1500)
	names := []string{
		"pipe", "loop", "out", "environ", "zero", "up", "locked/f", strings.Repeat("n", 255), strings.Repeat("n", 256), "new\nline", "\x1b]0;title\x07\x1b[2J", "-rf",
		"a b'\"$(id)", "\u202egnp.exe", "\u2066a\u2069", "t\U000e0069ag", "sock", "script.py", "sparse", "device", deep + "f", "d", ".", "up/up/etc/passwd", "out/x", "a\x00b", strings.Repeat("../", 100) + "etc/passwd",
	}
	// A short file that is binary holds nothing to be found.
	w.put("binary", "\x00red")
	if got := w.callAs("a", "s1", "fs:search", object{"query": "red", "path": "binary"}); !got.GetSuccess() {
		t.Errorf("a search in a binary file gave %v", got)
	}
	before := descriptors(t)
	for _, name := range names {
		for tool, args := range map[string]object{
			"fs:read_file": {}, "fs:stat": {}, "fs:list_dir": {"recursive": true}, "fs:search": {"query": "red"}, "fs:edit_file": {"old_string": "red", "new_string": "blue", "dry_run": true},
			"fs:write_file": {"content": "x", "append": true}, "python:run_script": {}, "system:shell": {"command": "true"},
		} {
			args["path"] = name
			if tool == "system:shell" {
				args["cwd"] = name
			}
			if tool == "fs:write_file" && name == "sparse" {
				continue // it may be written to
			}
			w.answered(tool, args)
		}
	}
	for _, name := range names { // none of which may be more than what it names
		if name != "." && name != "d" {
			w.answered("fs:delete", object{"path": name, "recursive": true})
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "kept outside" {
		t.Errorf("a file outside is %q, %v", text, err)
	}
	for end := time.Now().Add(settleLong); descriptors(t) > before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, %d before", descriptors(t), before)
		}
	}
}

const (
	settleLong = time.Minute
	// answerLimit is how long a call may take on a machine with other work.
	answerLimit = 30 * time.Second
)

// answered makes a call, which must be answered: with text that is text, or why not.
func (w *shellWorld) answered(tool string, args object) {
	w.tb.Helper()
	text, err := json.Marshal(args)
	must(w.tb, err)
	ctx, cancel := context.WithTimeout(w.tb.Context(), answerLimit)
	defer cancel()
	got, err := w.bridge().Tool(convert.AskText(ctx), &loombridgev1.ToolRequest{
		AgentId: "a", SessionId: "s1", Name: tool, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
	})
	what := fmt.Sprintf("%s %.80s", tool, text)
	switch code := status.Code(err); {
	case err != nil && code != codes.InvalidArgument:
		w.tb.Errorf("%s: %v", what, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		w.tb.Errorf("%s: no answer", what)
	case err == nil && !got.GetSuccess() && (got.GetErrorMessage() == "" || got.GetErrorCode() == loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_UNSPECIFIED):
		w.tb.Errorf("%s: failed without a word: %v", what, got)
	}
	if said := got.GetOutputJson() + got.GetErrorMessage() + got.GetObservation(); !utf8.ValidString(said) || strings.Contains(said, "kept outside") || strings.Contains(said, "root:x:") {
		w.tb.Errorf("%s gave %.300q", what, said)
	}
	line, _, _ := strings.Cut(got.GetObservation(), "\nUse fs:read_file to retrieve")
	if strings.ContainsAny(line, "\x1b\x07\n\x00\u202e\u2066\u2069\U000e0069") {
		w.tb.Errorf("%s: its line in prompts is %.300q", what, line)
	}
}

// descriptors are those that this process has open, in which the server runs.
func descriptors(tb testing.TB) int {
	tb.Helper()
	alone(tb)
	list, err := os.ReadDir("/proc/self/fd")
	must(tb, err)
	n := 0
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.Contains(to, "/store/") {
			n++
		}
	}
	return n
}

// A program that swaps a link while file tools use it leads them nowhere.
func TestSwappedLinksSoak(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("kept outside"), 0o644))
	eachTier(t, func(t *testing.T, w *shellWorld) {
		w.put("inside", "text inside")
		c := caller{w, "a", "s1"}
		begun := c.job("system:shell", object{"background": true, "command": "python3", "args": []string{"-c", `
import os, sys, time
print("swapping", flush=True)
while True:
    for to in ("inside", sys.argv[1], "dir"):
        try:
            if to == "dir": os.mkdir("new")
            else: os.symlink(to, "new")
            os.rename("new", "swapped")
        except OSError:
            try: os.rmdir("swapped"); os.rmdir("new")
            except OSError: pass
`, outside}})
		c.untilPrinted(begun.ID, "swapping")
		for range 60 {
			w.answered("fs:read_file", object{"path": "swapped"})
			w.answered("fs:write_file", object{"path": "swapped", "content": "written"})
			w.answered("fs:edit_file", object{"path": "swapped", "old_string": "outside", "new_string": "gone"})
			w.answered("fs:delete", object{"path": "swapped"})
		}
		c.job("job:stop", object{"job_id": begun.ID})
		if text, err := os.ReadFile(outside); err != nil || string(text) != "kept outside" {
			t.Errorf("a file outside is %q, %v", text, err)
		}
	})
}
