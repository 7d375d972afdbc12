package inner

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Messages between the kernel and the listener of a filter.
type (
	notification struct {
		id    uint64
		pid   uint32 // of the thread that calls
		flags uint32
		call  int32
		arch  uint32
		at    uint64
		args  [6]uint64
	}
	response struct {
		id    uint64
		value int64
		err   int32
		flags uint32
	}
)

const (
	ioctlIDValid  = 0x40082102
	ioctlSetFlags = 0x40082104
	syncWakeUp    = 1 // an answered caller runs on at once, where the answer was made
	goOn          = 1 // let the kernel run the call
	maxName       = 256
	maxValue      = 64 << 10
)

// take takes one message of the second stage.
func (s *supervisor) take(text, rights []byte) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		s.failed = err
		return
	}
	s.report.Layers = append(s.report.Layers, a.Layers...)
	s.report.ABI = max(s.report.ABI, a.ABI)
	if a.Failed != nil {
		s.report.Failed = a.Failed
	}
	if a.Error != "" {
		s.failed = errors.New(a.Error)
		if a.Missing {
			s.failed = &missing{a.Error}
		}
	}
	if !a.Listener {
		return
	}
	listener := -1
	if messages, err := unix.ParseSocketControlMessage(rights); err == nil && len(messages) > 0 {
		if files, err := unix.ParseUnixRights(&messages[0]); err == nil && len(files) > 0 {
			listener = files[0]
		}
	}
	if listener < 0 {
		s.failed = errors.New("seccomp: no listener came")
		s.killAll()
		return
	}
	go s.listen(listener)
}

type missing struct{ text string }

func (m *missing) Error() string        { return m.text }
func (m *missing) Is(target error) bool { return target == errMissing }

// listen answers the calls that the filter sends, until nothing has the filter any more or the
// process ends. It acts with no more rights than the tool has.
func (s *supervisor) listen(listener int) {
	s.as()
	_ = ioctlValue(listener, ioctlSetFlags, syncWakeUp) // before Linux 6.6 an answer takes a little longer
	for {
		var n notification
		switch e := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); e {
		case 0:
		case unix.ENOENT: // the caller was killed meanwhile, or no thread has the filter any more
			if abandoned(listener) {
				return
			}
			continue
		case unix.EINTR:
			continue
		default:
			return
		}
		c := &caller{s: s, n: &n, pid: int(n.pid), listener: listener}
		if n.call == unix.SYS_CONNECT {
			go func() { c.finish(c.run()) }() // it may wait
			continue
		}
		c.finish(c.run())
	}
}

// abandoned reports whether no thread has the filter of a listener any more.
func abandoned(listener int) bool {
	fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&unix.POLLHUP != 0
}

// finish answers a call, unless it was answered: with a value, with why it is refused, or by
// letting the kernel run it.
func (c *caller) finish(value int64, err error) {
	r := response{id: c.n.id, value: value}
	var e unix.Errno
	switch {
	case errors.Is(err, errAnswered):
		return
	case errors.Is(err, errGoOn):
		r.flags = goOn
	case errors.As(err, &e):
		r.value, r.err = 0, -int32(e)
	case err != nil:
		r.value, r.err = 0, -int32(unix.EPERM)
	}
	_ = ioctl(c.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // it may have been killed meanwhile
}

var errGoOn = errors.New("the kernel may run it")

// caller is the process that made a call.
type caller struct {
	s        *supervisor
	n        *notification
	pid      int // of the thread
	listener int
}

// valid reports whether the caller still waits, so that its number is no other process's.
func (c *caller) valid() bool {
	return ioctl(c.listener, ioctlIDValid, unsafe.Pointer(&c.n.id)) == 0
}

func (c *caller) arg(i int) uint64 { return c.n.args[i] }
func (c *caller) int(i int) int    { return int(int32(c.n.args[i])) }

func (c *caller) run() (int64, error) {
	switch c.n.call {
	case unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
		unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO:
		return 0, c.another(c.int(0))
	case unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET:
		process := unix.PRIO_PROCESS // neither groups nor users
		if c.n.call == unix.SYS_IOPRIO_SET {
			process = 1
		}
		if c.int(0) != process {
			return 0, unix.EPERM
		}
		return 0, c.another(c.int(1))
	case unix.SYS_KILL:
		return 0, c.signal(c.int(0))
	case unix.SYS_INOTIFY_ADD_WATCH:
		return c.inotify()
	case unix.SYS_CONNECT:
		return 0, c.connect()
	}
	if _, ok := targets[c.n.call]; ok {
		return 0, c.change()
	}
	return c.named()
}

// another lets a call reach a process of the same run only. The number stands in a
// register, so that it cannot be changed after the check.
func (c *caller) another(pid int) error {
	if pid == 0 || c.s.ours(pid) {
		return errGoOn
	}
	return unix.EPERM
}

// signal is another for kill, whose numbers below zero are groups.
func (c *caller) signal(pid int) error {
	if pid < -1 {
		pid = -pid
	}
	return c.another(pid) // -1 is no process of ours
}

// ours reports whether a process, or thread, descends from the first stage.
func (s *supervisor) ours(pid int) bool {
	self := os.Getpid()
	for range 1 << 12 {
		if pid <= 1 || pid == self {
			return false
		}
		parent := statusOf(pid, "PPid:")
		if parent == self {
			return true
		}
		pid = parent
	}
	return false
}

// statusOf reads a number from a process's status; 0 when there is none.
func statusOf(pid int, field string) int { return numberOf(pid, field, 10) }

func numberOf(pid int, field string, base int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), base, 64) // the kernel writes numbers
			return int(n)
		}
	}
	return 0
}

// target is which argument of a call says what to change.
type target struct {
	dir, path int // -1: the working directory, no path
	flags     int // -1: none
	nofollow  bool
}

var targets = map[int32]target{
	unix.SYS_CHMOD: {-1, 0, -1, false}, unix.SYS_FCHMOD: {0, -1, -1, false}, unix.SYS_FCHMODAT: {0, 1, -1, false}, unix.SYS_FCHMODAT2: {0, 1, 3, false},
	unix.SYS_CHOWN: {-1, 0, -1, false}, unix.SYS_LCHOWN: {-1, 0, -1, true}, unix.SYS_FCHOWN: {0, -1, -1, false}, unix.SYS_FCHOWNAT: {0, 1, 4, false},
	unix.SYS_UTIME: {-1, 0, -1, false}, unix.SYS_UTIMES: {-1, 0, -1, false}, unix.SYS_FUTIMESAT: {0, 1, -1, false}, unix.SYS_UTIMENSAT: {0, 1, 3, false},
	unix.SYS_SETXATTR: {-1, 0, -1, false}, unix.SYS_LSETXATTR: {-1, 0, -1, true}, unix.SYS_FSETXATTR: {0, -1, -1, false},
	unix.SYS_REMOVEXATTR: {-1, 0, -1, false}, unix.SYS_LREMOVEXATTR: {-1, 0, -1, true}, unix.SYS_FREMOVEXATTR: {0, -1, -1, false},
	unix.SYS_TRUNCATE: {-1, 0, -1, false}, unix.SYS_INOTIFY_ADD_WATCH: {-1, 1, -1, false},
}

// object is what a call is to change: the file itself, wherever its name leads by now.
type object struct {
	file int
	link bool // a symbolic link itself
}

func (o object) path() string { return "/proc/self/fd/" + strconv.Itoa(o.file) }

// open takes the text of the path out of the caller's memory, once, and opens what it
// leads to.
func (c *caller) open(t target) (object, error) {
	dir := unix.AT_FDCWD
	if t.dir >= 0 {
		dir = c.int(t.dir)
	}
	nofollow := t.nofollow
	empty := t.path < 0
	if t.flags >= 0 {
		nofollow = nofollow || c.int(t.flags)&unix.AT_SYMLINK_NOFOLLOW != 0
	}
	var path string
	if !empty {
		if address := c.arg(t.path); address != 0 {
			text, err := c.text(address, unix.PathMax)
			if err != nil {
				return object{}, err
			}
			path = text
		} else if c.n.call != unix.SYS_UTIMENSAT && c.n.call != unix.SYS_FUTIMESAT {
			return object{}, unix.EFAULT
		} else {
			empty = true // futimens
		}
		if path == "" && !empty {
			if t.flags < 0 || c.int(t.flags)&unix.AT_EMPTY_PATH == 0 {
				return object{}, unix.ENOENT
			}
			empty = true
		}
	}
	if !c.valid() {
		return object{}, unix.EINTR
	}
	return c.openAt(dir, path, empty, nofollow)
}

func (c *caller) openAt(dir int, path string, empty, nofollow bool) (object, error) {
	if empty {
		file, err := unix.Open(c.descriptorOf(dir), unix.O_PATH|unix.O_CLOEXEC, 0)
		return object{file: file}, badDescriptor(err)
	}
	f, err := c.resolve(dir, path, !nofollow || strings.HasSuffix(path, "/"))
	if err != nil {
		return object{}, err
	}
	if f.cut() {
		f.close()
		return object{}, unix.ENOTDIR
	}
	o := object{file: f.object, link: f.kind() == unix.S_IFLNK}
	f.object = -1
	f.close()
	if o.file < 0 {
		return object{}, unix.ENOENT
	}
	return o, nil
}

func badDescriptor(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return unix.EBADF
	}
	return err
}

// text reads a string of the caller's.
func (c *caller) text(address uint64, most int) (string, error) {
	var text []byte
	page := uint64(os.Getpagesize())
	for len(text) < most {
		piece := make([]byte, min(page-address%page, uint64(most-len(text))))
		if err := c.memory(address, piece); err != nil {
			return "", err
		}
		if end := slices.Index(piece, 0); end >= 0 {
			return string(append(text, piece[:end]...)), nil
		}
		text = append(text, piece...)
		address += uint64(len(piece))
	}
	return "", unix.ENAMETOOLONG
}

// memory reads some of the caller's.
func (c *caller) memory(address uint64, into []byte) error {
	if len(into) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}
	n, err := unix.ProcessVMReadv(c.pid, local, remote, 0)
	if err != nil || n != len(into) {
		return unix.EFAULT
	}
	return nil
}

// change runs one of the calls that change metadata, on the file itself.
func (c *caller) change() error {
	t, ok := targets[c.n.call]
	if !ok {
		return unix.EPERM
	}
	o, err := c.open(t)
	if err != nil {
		return err
	}
	defer unix.Close(o.file)
	if place := where(o); !c.s.writable(place) || c.s.keeps(place, false) {
		return unix.EPERM
	}
	switch c.n.call {
	case unix.SYS_CHMOD, unix.SYS_FCHMOD:
		return c.chmod(o, c.arg(1))
	case unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2:
		return c.chmod(o, c.arg(2))
	case unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_FCHOWN:
		return unix.Fchownat(o.file, "", c.int(1), c.int(2), unix.AT_EMPTY_PATH)
	case unix.SYS_FCHOWNAT:
		return unix.Fchownat(o.file, "", c.int(2), c.int(3), unix.AT_EMPTY_PATH)
	case unix.SYS_UTIME, unix.SYS_UTIMES:
		return c.times(o, c.arg(1))
	case unix.SYS_FUTIMESAT, unix.SYS_UTIMENSAT:
		return c.times(o, c.arg(2))
	case unix.SYS_TRUNCATE:
		return unix.Truncate(o.path(), int64(c.arg(1)))
	}
	return c.xattr(o)
}

func (c *caller) chmod(o object, mode uint64) error {
	if o.link {
		return unix.EOPNOTSUPP
	}
	return unix.Fchmodat(unix.AT_FDCWD, o.path(), uint32(mode)&0o1777, 0)
}

// times sets access and change time from one of the three forms they are given in.
func (c *caller) times(o object, address uint64) error {
	var specs [2]unix.Timespec
	words := [4]int64{0, unix.UTIME_NOW, 0, unix.UTIME_NOW}
	if address != 0 {
		size := 32
		if c.n.call == unix.SYS_UTIME {
			size = 16
		}
		if err := c.memory(address, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)); err != nil {
			return err
		}
		switch c.n.call {
		case unix.SYS_UTIME:
			words = [4]int64{words[0], 0, words[1], 0}
		case unix.SYS_UTIMES, unix.SYS_FUTIMESAT:
			words[1], words[3] = words[1]*1000, words[3]*1000
		}
	}
	specs[0], specs[1] = unix.Timespec{Sec: words[0], Nsec: words[1]}, unix.Timespec{Sec: words[2], Nsec: words[3]}
	if o.link {
		return unix.UtimesNanoAt(o.file, "", specs[:], unix.AT_EMPTY_PATH)
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, o.path(), specs[:], 0)
}

func (c *caller) xattr(o object) error {
	if o.link {
		return unix.EPERM // no user attributes there
	}
	name, err := c.text(c.arg(1), maxName)
	if err != nil {
		return err
	}
	switch c.n.call {
	case unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR:
		return unix.Removexattr(o.path(), name)
	}
	if c.arg(3) > maxValue {
		return unix.E2BIG
	}
	value := make([]byte, c.arg(3))
	if err := c.memory(c.arg(2), value); err != nil {
		return err
	}
	return unix.Setxattr(o.path(), name, value, c.int(4))
}

// inotify watches what the tool may read, on a copy of the caller's own descriptor.
func (c *caller) inotify() (int64, error) {
	t := targets[c.n.call]
	t.nofollow = c.arg(2)&unix.IN_DONT_FOLLOW != 0
	o, err := c.open(t)
	if err != nil {
		return 0, err
	}
	defer unix.Close(o.file)
	if !c.s.readable(where(o)) {
		return 0, unix.EACCES
	}
	watcher, err := c.descriptor(0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(watcher)
	wd, err := unix.InotifyAddWatch(watcher, o.path(), uint32(c.arg(2))&^unix.IN_DONT_FOLLOW)
	return int64(wd), err
}

// descriptor is a copy of one of the caller's own.
func (c *caller) descriptor(argument int) (int, error) {
	process, err := unix.PidfdOpen(statusOf(c.pid, "Tgid:"), 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	if !c.valid() {
		return -1, unix.EINTR // the number may be another process's by now
	}
	return unix.PidfdGetfd(process, c.int(argument), 0)
}

// where is the place of an object now; empty when it is unknown. A deleted object's place
// ends with " (deleted)". The suffix is never removed, since any name may end so.
func where(o object) string {
	to, err := os.Readlink(o.path())
	if err != nil {
		return ""
	}
	return to
}

// writable reports whether the tool may change what is at a place. What has no place on
// disk, such as a pipe, is the tool's own.
func (s *supervisor) writable(place string) bool {
	if place == "" {
		return false
	}
	if !strings.HasPrefix(place, "/") || strings.HasPrefix(place, "/memfd:") {
		return true
	}
	roots := append([]string{s.spec.Scratch}, s.spec.Write...)
	if !s.spec.ReadOnly {
		roots = append(roots, s.spec.Workspace.Path)
	}
	if s.spec.Tier == Namespaces {
		roots = append(roots, tmpFolder, "/dev/shm")
	}
	return below(place, roots)
}

func (s *supervisor) readable(place string) bool {
	return s.writable(place) || below(place, append(append([]string{s.spec.Workspace.Path}, systemFolders...), s.spec.Read...))
}

func below(place string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return root != "" && (place == root || strings.HasPrefix(place, strings.TrimSuffix(root, "/")+"/"))
	})
}
