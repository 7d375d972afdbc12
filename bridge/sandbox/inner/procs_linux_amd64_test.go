package inner

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLayersOfTiers(t *testing.T) {
	t.Parallel()
	all := []string{
		LayerUser, LayerMount, LayerPID, LayerNet, LayerIPC, LayerLandlock, LayerSeccomp, LayerNotify, LayerCaps, LayerNNP, LayerLimits,
	}
	for tier, want := range map[string][]string{Namespaces: all, Landlock: all[5:], None: all[10:]} {
		s := Spec{Tier: tier}
		for _, layer := range all {
			if got := s.With(layer); got != slices.Contains(want, layer) {
				t.Errorf("%s: %s: %v", tier, layer, got)
			}
			without := Spec{Tier: tier, Without: []string{layer}}
			if without.With(layer) {
				t.Errorf("%s: %s is left out, and is there", tier, layer)
			}
		}
	}
}

// TestBaseIsOfNoJob: what is made before there is a job has nothing of one.
func TestBaseIsOfNoJob(t *testing.T) {
	t.Parallel()
	full := Spec{
		Tier: Namespaces, Argv: []string{"x"}, Env: []string{"SECRET=1"}, Cwd: "/w", Workspace: Folder{Path: "/w", Ino: 1}, ReadOnly: true,
		Scratch: "/s", Read: []string{"/r"}, Write: []string{"/o"}, Hide: []string{"/h"}, Protect: []string{".git"}, Own: []Folder{{Ino: 2}},
		Proxy: 1, Input: true, UID: 1, GID: 2, Limits: Limits{CPU: 1, Memory: 2, Scratch: 3}, ABI: 4, Without: []string{LayerNet}, Check: &Check{},
	}
	base := full.Base()
	want := full
	want.Argv, want.Env, want.Cwd, want.Scratch, want.Hide, want.Protect, want.Own = nil, nil, "", "", nil, nil, nil
	want.Proxy, want.Input, want.Limits, want.Check = 0, false, Limits{Scratch: 3}, nil
	if !reflect.DeepEqual(base, want) {
		t.Errorf("%+v", base)
	}
	// The spec of the job is read over it: what it does not name must be the base's.
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &base); err != nil || !reflect.DeepEqual(base, full) {
		t.Errorf("%+v, %v", base, err)
	}
}

func TestRightsOfKernels(t *testing.T) {
	t.Parallel()
	before := uint64(0)
	for abi := 1; abi < 12; abi++ {
		now := handled(abi)
		if now&before != before {
			t.Errorf("ABI %d takes less away than the one before", abi)
		}
		if before = now; now&rightsMake != rightsMake || now&rightsExec != rightsExec {
			t.Errorf("ABI %d: %#x", abi, now)
		}
	}
	if handled(1)&unix.LANDLOCK_ACCESS_FS_REFER != 0 || handled(2)&unix.LANDLOCK_ACCESS_FS_TRUNCATE != 0 || handled(4)&unix.LANDLOCK_ACCESS_FS_IOCTL_DEV != 0 {
		t.Error("a right is asked for that the kernel does not know")
	}
}

// TestOnlyTheRunsOwn: a call reaches no process that does not descend from the supervisor.
func TestOnlyTheRunsOwn(t *testing.T) {
	t.Parallel()
	c := &caller{s: &supervisor{}, n: &notification{}, pid: os.Getpid()}
	for _, pid := range []int{1, -1, 2, os.Getpid(), os.Getppid(), 1 << 22, -1 << 31, 1<<31 - 1} {
		for name, do := range map[string]func(int) error{"another": c.another, "signal": c.signal} {
			if err := do(pid); !errors.Is(err, unix.EPERM) {
				t.Errorf("%s %d: %v", name, pid, err)
			}
		}
	}
	if err := c.another(0); !errors.Is(err, errGoOn) {
		t.Error("the caller itself: ", err)
	}
	for call, args := range map[int32][6]uint64{
		unix.SYS_SETPRIORITY: {unix.PRIO_USER, 0}, unix.SYS_IOPRIO_SET: {3, 0}, unix.SYS_KILL: {1<<64 - 1}, unix.SYS_TGKILL: {1, 1},
	} {
		c.n.call, c.n.args = call, args
		if _, err := c.run(); !errors.Is(err, unix.EPERM) {
			t.Errorf("call %d: %v", call, err)
		}
	}
	if send(os.Getpid(), 0, map[int]bool{}) || send(1<<22, 0, map[int]bool{0: true}) {
		t.Error("a signal reaches a process of another parent")
	}
	if !send(os.Getpid(), 0, map[int]bool{os.Getppid(): true}) {
		t.Error("a signal does not reach a process of the parent that is asked for")
	}
}

func TestWhatProcSays(t *testing.T) {
	t.Parallel()
	own := os.Getpid()
	if statusOf(own, "PPid:") != os.Getppid() || statusOf(own, "Tgid:") != own || statusOf(own, "Nothing:") != 0 || statusOf(1<<22, "PPid:") != 0 {
		t.Error("status")
	}
	if !slices.Contains(numbers("/proc", 1), own) || slices.Contains(numbers("/proc", own), own) || numbers("/nothing", 0) != nil {
		t.Error("processes")
	}
	if slices.Contains(descendants(own), own) || !slices.Contains(descendants(os.Getppid()), own) {
		t.Error("descendants")
	}
	file, err := unix.MemfdCreate("held", unix.MFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(file)
	const size = 8 << 20
	if _, err := unix.Write(file, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	twice, err := unix.Dup(file)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(twice)
	sizes := map[uint64]int64{}
	memfds("/proc/self/fd", sizes)
	memfds("/proc/self/fd", sizes)
	var sum int64
	for _, n := range sizes {
		sum += n
	}
	if sum < size || sum >= 2*size {
		t.Errorf("%d bytes in files of memory, %d are held under two descriptors", sum, size)
	}
	if got := memoryOf([]int{own, 1 << 22}, 1<<62); got < size {
		t.Errorf("%d bytes of memory", got)
	}
	s := &supervisor{spec: Spec{Tier: None, Workspace: Folder{Path: "/"}, Limits: Limits{DiskFloor: 1 << 62}}}
	if got := s.over(); got != LimitDisk {
		t.Errorf("limit %q", got)
	}
	if s.spec.Limits = (Limits{DiskFloor: 1, Memory: 1 << 62, Processes: 1 << 16}); s.over() != "" {
		t.Error("a limit is exceeded")
	}
	if free("/nothing") != 1<<63-1 {
		t.Error("a disk that is not known has no room")
	}
	s.exceed(LimitMemory)
	s.exceed(LimitDisk)
	if got := *s.limit.Load(); got != LimitMemory {
		t.Errorf("%s ended the run", got)
	}
}

// TestFindIsTheShells: a program is looked for in the folders of PATH, in order, among what
// can be run.
func TestFindIsTheShells(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{one + "/plain": 0o644, two + "/plain": 0o755, two + "/only": 0o755} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(one, "only"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, want string }{
		{"plain", two + "/plain"}, {"only", two + "/only"}, {"nothing", ""}, {"./here", "./here"}, {"/bin/x", "/bin/x"},
	} {
		c := &confined{spec: Spec{Argv: []string{row.name}, Env: []string{"PATH=/nothing", "PATHS=" + one, "PATH=" + one + ":" + two}}}
		got, err := c.find()
		if got != row.want || (row.want == "") != errors.Is(err, errMissing) {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
}

// TestWhatTheSecondStageSays: a report is made of what was said, and what can't be read
// fails the run.
func TestWhatTheSecondStageSays(t *testing.T) {
	t.Parallel()
	s := &supervisor{spec: Spec{Tier: Namespaces}}
	s.take([]byte(`{"layers":["limits"],"abi":4}`), nil)
	s.take([]byte(`{"layers":["landlock"],"abi":0}`), nil)
	if s.failed != nil || !slices.Equal(s.report.Layers, []string{"limits", "landlock"}) || s.report.ABI != 4 {
		t.Errorf("%+v, %v", s.report, s.failed)
	}
	s.take([]byte(`{"error":"no such program","missing":true}`), nil)
	if !errors.Is(s.failed, errMissing) || s.failed.Error() != "no such program" {
		t.Error(s.failed)
	}
	for _, text := range []string{"", "{", "[]", `{"abi":"x"}`} {
		s.failed = nil
		if s.take([]byte(text), nil); s.failed == nil {
			t.Errorf("%q is an answer", text)
		}
	}
	for _, rights := range [][]byte{nil, {1}, make([]byte, unix.CmsgSpace(4))} {
		if _, err := received(rights); err == nil {
			t.Errorf("descriptors came in %v", rights)
		}
	}
	pipe := [2]int{}
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	if files, err := received(unix.UnixRights(pipe[:]...)); err != nil || !slices.Equal(files, pipe[:]) {
		t.Errorf("%v, %v", files, err)
	}
}

// TestOnlyTheProxy: a socket is connected to the proxy, and nothing else is read for it.
func TestOnlyTheProxy(t *testing.T) {
	t.Parallel()
	c := &caller{s: &supervisor{spec: Spec{Proxy: 8080}}, n: &notification{call: unix.SYS_CONNECT}, pid: os.Getpid()}
	for name, address := range map[string]struct {
		family byte
		port   uint16
		host   [4]byte
		size   uint64
		want   error
	}{
		"elsewhere":     {unix.AF_INET, 8080, [4]byte{127, 0, 0, 2}, 16, unix.EACCES},
		"any":           {unix.AF_INET, 8080, [4]byte{}, 16, unix.EACCES},
		"another port":  {unix.AF_INET, 8081, [4]byte{127, 0, 0, 1}, 16, unix.EACCES},
		"no port":       {unix.AF_INET, 0, [4]byte{127, 0, 0, 1}, 16, unix.EACCES},
		"another kind":  {unix.AF_INET6, 8080, [4]byte{127, 0, 0, 1}, 28, unix.EACCES},
		"none":          {unix.AF_UNSPEC, 8080, [4]byte{127, 0, 0, 1}, 16, unix.EACCES},
		"cut":           {unix.AF_INET, 8080, [4]byte{127, 0, 0, 1}, 15, unix.EINVAL},
		"negative size": {unix.AF_INET, 8080, [4]byte{127, 0, 0, 1}, 1<<64 - 1, unix.EINVAL},
	} {
		raw := append([]byte{address.family, 0, byte(address.port >> 8), byte(address.port)}, address.host[:]...)
		raw = append(raw, make([]byte, 20)...)
		c.n.args = [6]uint64{0, pointerTo(raw), address.size}
		if err := c.connect(); !errors.Is(err, address.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.n.args = [6]uint64{0, 8, 16}
	if err := c.connect(); !errors.Is(err, unix.EFAULT) {
		t.Error(err)
	}
	if got := c.descriptorOf(7); got != "/proc/"+strconv.Itoa(os.Getpid())+"/fd/7" {
		t.Error(got)
	}
}
