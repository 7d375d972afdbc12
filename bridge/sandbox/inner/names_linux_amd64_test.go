package inner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/filter"
)

// thread is a thread of this process that makes calls, one after another.
type thread struct {
	calls chan func()
	done  chan struct{}
}

func newThread(t *testing.T, prepare func() error) *thread {
	t.Helper()
	th := &thread{make(chan func()), make(chan struct{})}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ready <- prepare()
		for call := range th.calls {
			call()
			th.done <- struct{}{}
		}
	}()
	if err := <-ready; err != nil {
		close(th.calls)
		t.Skip(err)
	}
	t.Cleanup(func() { close(th.calls) })
	return th
}

func (th *thread) do(call func()) {
	th.calls <- call
	<-th.done
}

// supervised is a thread whose calls a supervisor answers, as those of a tool.
func supervised(t *testing.T, s *supervisor) *thread {
	t.Helper()
	code, err := filter.Assemble(filter.Options{Names: true, Supervised: true, First: true})
	if err != nil {
		t.Fatal(err)
	}
	program := struct {
		length uint16
		code   *filter.Instruction
	}{uint16(len(code)), &code[0]}
	var listener uintptr
	th := newThread(t, func() error {
		s.as()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		var e unix.Errno
		listener, _, e = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
		runtime.KeepAlive(code)
		if e != 0 {
			return fmt.Errorf("no filter with a listener: %w", e)
		}
		return nil
	})
	go s.listen(int(listener)) // it ends with the thread
	return th
}

func inWorkspace(t *testing.T, protected ...string) (*supervisor, string) {
	t.Helper()
	workspace, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{spec: Spec{
		Tier: Landlock, Workspace: Folder{Path: workspace}, UID: os.Geteuid(), GID: os.Getegid(), Protect: protected,
	}}
	s.names = newNames(&s.spec)
	return s, workspace
}

// step is a call on names below a folder.
type step struct {
	call       string
	path, to   string
	flags      int
	mode       uint32
	byFullPath bool
}

// run makes the call below root, and returns what it gives.
func (st step) run(root string) (result string) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(dir)
	path, to := st.path, st.to
	if st.byFullPath {
		dir = unix.AT_FDCWD
		path = root + "/" + path
		if st.call != "symlink" {
			to = root + "/" + to
		}
	}
	p, q := pointer(path), pointer(to)
	at := uintptr(dir)
	var e unix.Errno
	switch st.call {
	case "open":
		var n uintptr
		n, _, e = unix.Syscall6(unix.SYS_OPENAT, at, p, uintptr(st.flags|unix.O_NONBLOCK), uintptr(st.mode), 0, 0)
		if e == 0 {
			return opened(int(n))
		}
	case "creat":
		var n uintptr
		n, _, e = unix.Syscall(unix.SYS_CREAT, pointer(root+"/"+st.path), uintptr(st.mode), 0)
		if e == 0 {
			return opened(int(n))
		}
	case "mkdir":
		_, _, e = unix.Syscall(unix.SYS_MKDIRAT, at, p, uintptr(st.mode))
	case "mknod":
		_, _, e = unix.Syscall6(unix.SYS_MKNODAT, at, p, uintptr(unix.S_IFIFO|st.mode), 0, 0, 0)
	case "symlink":
		_, _, e = unix.Syscall(unix.SYS_SYMLINKAT, q, at, p)
	case "link":
		_, _, e = unix.Syscall6(unix.SYS_LINKAT, at, p, at, q, uintptr(st.flags&unix.AT_SYMLINK_FOLLOW), 0)
	case "unlink":
		_, _, e = unix.Syscall(unix.SYS_UNLINKAT, at, p, 0)
	case "rmdir":
		_, _, e = unix.Syscall(unix.SYS_UNLINKAT, at, p, unix.AT_REMOVEDIR)
	case "rename":
		_, _, e = unix.Syscall6(unix.SYS_RENAMEAT2, at, p, at, q, uintptr(st.flags&3%3), 0)
	case "truncate":
		_, _, e = unix.Syscall(unix.SYS_TRUNCATE, pointer(root+"/"+st.path), 3, 0)
	case "chmod":
		_, _, e = unix.Syscall6(unix.SYS_FCHMODAT, at, p, uintptr(st.mode), 0, 0, 0)
	case "utimens":
		times := [2]unix.Timespec{{Sec: int64(st.mode)}, {Sec: int64(st.flags & 0xffff)}}
		_, _, e = unix.Syscall6(unix.SYS_UTIMENSAT, at, p, uintptr(unsafe.Pointer(&times)), uintptr(st.flags&unix.AT_SYMLINK_NOFOLLOW), 0, 0)
	}
	return unix.ErrnoName(e)
}

func pointer(text string) uintptr {
	p, _ := unix.BytePtrFromString(text)
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

func pointerTo(raw []byte) uint64 {
	kept = append(kept, &raw[0])
	return uint64(uintptr(unsafe.Pointer(&raw[0])))
}

// kept keeps what a call is given from the collector.
var kept []*byte

// opened says how a descriptor is open, writes a byte, and closes it.
func opened(n int) string {
	defer unix.Close(n)
	flags, _ := unix.FcntlInt(uintptr(n), unix.F_GETFL, 0)
	flags &^= unix.O_NOFOLLOW // it means nothing from then on
	own, _ := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	_, err := unix.Write(n, []byte("w"))
	return fmt.Sprintf("flags %#x, of the descriptor %d, written %v", flags, own, err)
}

func refused(result string) bool { return strings.HasPrefix(result, "E") }

// steps makes calls on a handful of names, so that they meet.
func steps(random *rand.Rand) step {
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	path := func() string {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = pick("a", "b", "c", "d", "d", "l", "l", ".", "..")
		}
		return strings.Join(parts, pick("/", "/", "//")) + pick("", "", "", "", "/")
	}
	st := step{
		call: pick("open", "open", "open", "mkdir", "mkdir", "mknod", "symlink", "symlink", "link", "unlink", "rmdir", "rename",
			"rename", "truncate", "chmod", "utimens"),
		path: path(), to: path(), mode: []uint32{0o755, 0o644, 0o600, 0}[random.IntN(4)], byFullPath: random.IntN(4) == 0,
	}
	if st.call == "symlink" {
		st.to = pick("a", "b", "d", "l", "d/", "d/.", "../a", "../d", ".", "nothing", "l/a", "d/../a")
	}
	for _, flag := range []int{
		unix.O_CREAT, unix.O_CREAT, unix.O_EXCL, unix.O_TRUNC, unix.O_WRONLY, unix.O_RDWR, unix.O_APPEND, unix.O_NOFOLLOW, unix.O_DIRECTORY,
		unix.O_CLOEXEC, unix.O_PATH | unix.O_WRONLY, unix.O_TMPFILE | unix.O_RDWR, 1, 2,
	} {
		if random.IntN(4) == 0 {
			st.flags |= flag
		}
	}
	if random.IntN(2) == 0 {
		st.flags |= unix.AT_SYMLINK_FOLLOW
	}
	return st
}

// tree describes all below a folder.
func tree(root string) string {
	var b strings.Builder
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		var stat unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &stat)
		}
		to, _ := os.Readlink(path)
		size := stat.Size
		if d.IsDir() {
			size = 0
		}
		fmt.Fprintf(&b, "%s %#o %d %d %q %v\n", strings.TrimPrefix(path, root), stat.Mode, stat.Nlink, size, to, err)
		return nil
	})
	return b.String()
}

// TestCallsAreTheKernels: what the supervisor does in the place of a tool gives the same
// results, and leaves the same files, as the kernel does for a process without a supervisor.
func TestCallsAreTheKernels(t *testing.T) {
	s, workspace := inWorkspace(t)
	old := unix.Umask(0o022)
	defer unix.Umask(old)
	deep := strings.Repeat("/n", 24) // no path leads out
	tool, free := supervised(t, s), newThread(t, func() error { s.as(); return nil })
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		roots := [2]string{fmt.Sprintf("%s/%d-tool%s", workspace, seed, deep), fmt.Sprintf("%s/%d-free%s", workspace, seed, deep)}
		for _, root := range roots {
			if err := os.MkdirAll(root, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var done []string
		for range 60 {
			st := steps(random)
			var got, want string
			tool.do(func() { got = st.run(roots[0]) })
			free.do(func() { want = st.run(roots[1]) })
			kept = nil
			done = append(done, fmt.Sprintf("%+v: %s", st, want))
			if refused(got) && refused(want) {
				continue // which of several reasons is given may differ
			}
			if got != want {
				t.Fatalf("%+v gives %q, by the kernel %q, after\n%s", st, got, want, strings.Join(done, "\n"))
			}
		}
		if got, want := tree(roots[0]), tree(roots[1]); got != want {
			t.Fatalf("files\n%s\nby the kernel\n%s\nafter\n%s", got, want, strings.Join(done, "\n"))
		}
	}
}

// TestKeptNames: whatever calls are made, what is protected stays as it is.
func TestKeptNames(t *testing.T) {
	s, workspace := inWorkspace(t, "a/b", "d/.git/config")
	for _, dir := range []string{"a/b/c", "d/.git", "e"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	protected := []string{"a/b/c/file", "a/b/file", "d/.git/config"}
	for _, name := range protected {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte("kept"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(filepath.Join(workspace, "a", "b"))
	tool := supervised(t, s)
	random := rand.New(rand.NewPCG(7, 7))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	path := func() string {
		return pick("", "e/../", "l/", "./", "a/../", "d/") + pick("a", "a/b", "A/B", "a/b/file", "a/b/c", "a/b/c/file", "d", "d/.git", "d/.git/config", "e", "l", "m", "e/x", ".git/config", "b", "b/file")
	}
	for range 1500 {
		st := steps(random)
		st.path, st.to = path(), path()
		tool.do(func() { st.run(workspace) })
		kept = nil
		if now := tree(filepath.Join(workspace, "a", "b")); now != before {
			t.Fatalf("after %+v\n%s\nbefore\n%s", st, now, before)
		}
		for _, name := range protected {
			if text, err := os.ReadFile(filepath.Join(workspace, name)); string(text) != "kept" {
				t.Fatalf("after %+v %s holds %q, %v", st, name, text, err)
			}
		}
	}
	var r Report
	s.names.fill(&r)
	if len(r.Refused) == 0 || len(r.Refused) > maxRefused || slices.ContainsFunc(r.Refused, filepath.IsAbs) {
		t.Errorf("refused: %q", r.Refused)
	}
}

// TestNothingOutside: neither names nor links lead a call out of the workspace.
func TestNothingOutside(t *testing.T) {
	s, workspace := inWorkspace(t)
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	beside := workspace + " (deleted)" // as /proc calls the workspace once it is gone
	for _, place := range []string{outside, beside} {
		if err := errors.Join(os.MkdirAll(place+"/sub", 0o755), os.WriteFile(place+"/file", []byte("kept"), 0o644)); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(place)
	}
	for name, to := range map[string]string{"l": outside, "m": outside + "/file", "n": "../" + filepath.Base(beside), "proc": "/proc/self/root" + outside} {
		if err := os.Symlink(to, filepath.Join(workspace, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(workspace+"/own", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(outside) + tree(beside)
	tool := supervised(t, s)
	var got string
	for _, folder := range []string{"l", "n", "proc", "../" + filepath.Base(outside), "../" + filepath.Base(beside), "l/sub/..", "m/.."} {
		for _, name := range []string{"file", "new", "sub", "sub/new", "."} {
			for _, call := range []string{"open", "creat", "mkdir", "mknod", "symlink", "unlink", "rmdir", "truncate", "chmod", "utimens"} {
				st := step{call: call, path: folder + "/" + name, to: "/etc/passwd", flags: unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC, mode: 0o600}
				tool.do(func() { got = st.run(workspace) })
				if got == "" || strings.HasPrefix(got, "flags") {
					t.Errorf("%+v: %q", st, got)
				}
			}
			for _, st := range []step{
				{call: "rename", path: "own", to: folder + "/" + name},
				{call: "rename", path: folder + "/" + name, to: "taken"},
				{call: "link", path: "own", to: folder + "/" + name},
				{call: "link", path: folder + "/" + name, to: "taken"},
			} {
				if tool.do(func() { got = st.run(workspace) }); got == "" {
					t.Errorf("%+v is done", st)
				}
			}
		}
	}
	tool.do(func() { got = step{call: "truncate", path: "m"}.run(workspace) })
	if after := tree(outside) + tree(beside); got == "" || after != before {
		t.Errorf("%q, and\n%s\nbefore\n%s", got, after, before)
	}
}

func TestWhatHasNoPath(t *testing.T) {
	s, workspace := inWorkspace(t)
	s.spec.Read, s.spec.Write, s.spec.Scratch = []string{"/data"}, []string{"/out/"}, "/scratch"
	for place, want := range map[string][2]bool{ // readable, writable
		"": {}, "/": {}, workspace: {true, true}, workspace + "/x": {true, true}, workspace + "x": {}, filepath.Dir(workspace): {},
		"/data/x": {true, false}, "/database": {}, "/out/x": {true, true}, "/out": {}, "/scratch": {true, true}, "/tmp/home": {},
		"pipe:[12]": {true, true}, "/memfd:x": {true, true}, "/memfd": {}, "/usr/bin/env": {true, false}, "/etc/passwd": {}, "/dev/null": {},
	} {
		if got := [2]bool{s.readable(place), s.writable(place)}; got != want {
			t.Errorf("%q: %v, want %v", place, got, want)
		}
	}
	s.spec.ReadOnly = true
	if s.writable(workspace) || !s.readable(workspace) {
		t.Error("a workspace that stays as it is can be changed")
	}
	s.spec.Tier = Namespaces
	if !s.writable("/tmp/x") || !s.device("/dev/pts/0") || s.device("/dev/sda") || !s.device("/dev/null") {
		t.Error("the folders of the other tier")
	}
}

// TestRepositoriesOfPrograms: what is protected of a repository is not of one that a program
// has made in the place of nothing, as long as it is the same folder.
func TestRepositoriesOfPrograms(t *testing.T) {
	s, workspace := inWorkspace(t, ".git/config", ".git/hooks")
	tool := supervised(t, s)
	do := func(call, path, to string) (got string) {
		tool.do(func() {
			got = step{call: call, path: path, to: to, flags: unix.O_CREAT | unix.O_WRONLY, mode: 0o755}.run(workspace)
		})
		return got
	}
	if got := do("mkdir", "new", "") + do("mkdir", "new/.git", "") + do("mkdir", "new/.git/hooks", ""); got != "" {
		t.Error("a program may make a repository of its own: ", got)
	}
	var r Report
	s.names.fill(&r)
	if len(r.Made) != 1 {
		t.Fatal(r.Made)
	}
	next := &supervisor{spec: s.spec}
	next.spec.Own = r.Made
	next.names = newNames(&next.spec)
	if next.keeps(workspace+"/new/.git/config", false) {
		t.Error("a later run may not change a repository that an earlier one has made")
	}
	if got := do("rmdir", "new/.git/hooks", "") + do("rmdir", "new/.git", ""); got != "" {
		t.Error(got)
	}
	s.names.fill(&r)
	if len(r.Made) != 0 {
		t.Error("a folder that is gone is still the run's: ", r.Made)
	}
	if err := os.MkdirAll(workspace+"/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := do("mkdir", ".git/hooks", ""); got != "EPERM" {
		t.Error("a repository of others: ", got)
	}
}

// TestCutPaths: text is read from the memory of the caller up to its end, no further.
func TestCutPaths(t *testing.T) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	if err := unix.Mprotect(memory[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	c := &caller{pid: os.Getpid()}
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	for _, row := range []struct {
		text string
		end  bool // a zero stands behind it
		most int
		want error
	}{
		{"path", true, unix.PathMax, nil},
		{"", true, unix.PathMax, nil},
		{"path", false, unix.PathMax, unix.EFAULT},
		{strings.Repeat("x", 99), true, 100, nil},
		{strings.Repeat("x", 100), true, 100, unix.ENAMETOOLONG},
	} {
		text := []byte(row.text)
		if row.end {
			text = append(text, 0)
		}
		at := copy(memory[page-len(text):page], text) // right before what can't be read
		got, err := c.text(start+uint64(page-at), row.most)
		if !errors.Is(err, row.want) || err == nil && got != row.text {
			t.Errorf("%q: %q, %v", row.text, got, err)
		}
	}
	for _, address := range []uint64{0, 1, start + uint64(page), 1<<64 - 1, ^uint64(page)} {
		if got, err := c.text(address, unix.PathMax); err == nil {
			t.Errorf("at %#x: %q", address, got)
		}
	}
	if err := c.memory(0, nil); err != nil {
		t.Error(err)
	}
}

func FuzzMessage(f *testing.F) {
	var whole bytes.Buffer
	if err := WriteMessage(&whole, Spec{Tier: Landlock, Argv: []string{"true"}, Own: []Folder{{Path: "/x", Ino: 1}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte{0xff, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 2, '{'})
	f.Fuzz(func(t *testing.T, text []byte) {
		var spec, again Spec
		if ReadMessage(bytes.NewReader(text), &spec) != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteMessage(&out, spec); err != nil {
			t.Fatal(err)
		}
		for cut := range out.Len() {
			if ReadMessage(bytes.NewReader(out.Bytes()[:cut]), &again) == nil {
				t.Fatalf("%d of %d bytes are taken for a message", cut, out.Len())
			}
		}
	})
}
