package inner

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
)

// Calls that make names, change what a name stands for, or open something to be changed are
// made by the supervisor in the place of the tool: it looks a path up once, and makes the call
// on what it has found. So a name can be kept although nothing is there yet, on the
// disk of other users nothing stands in its place, and no swap between a
// look and a call leads elsewhere.

// maxRefused bounds the names in a report.
const maxRefused = 32

// names is what of the workspace stays as it is, and what programs have made there
// themselves. The listener alone uses it, but for the report.
type names struct {
	set *commands.Set
	own map[Folder]bool // folders of repositories, of this run and those before it, without paths

	mu      sync.Mutex
	made    []Folder // guarded by mu; what of own is this run's
	refused []string // guarded by mu
}

func newNames(spec *Spec) *names {
	n := &names{set: commands.NewSet(spec.Protect), own: map[Folder]bool{}}
	for _, f := range spec.Own {
		n.own[Folder{Dev: f.Dev, Ino: f.Ino, Born: f.Born}] = true
	}
	return n
}

// errAnswered: the call was answered already, or will be by another goroutine.
var errAnswered = errors.New("answered")

// as becomes the tool's user without any capability, for good: the goroutine keeps its
// thread, which ends with it.
func (s *supervisor) as() {
	runtime.LockOSThread()
	if unix.Geteuid() == 0 && s.spec.UID != 0 {
		gid, uid := uintptr(s.spec.GID), uintptr(s.spec.UID)
		_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid)
		_, _, _ = unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_ = unix.Capset(&header, &none[0]) // dropping is always allowed
}

// path reads a path out of the caller's memory, once.
func (c *caller) path(argument int) (string, error) { return c.text(c.arg(argument), unix.PathMax) }

// named are the calls on names: each is made here.
func (c *caller) named() (int64, error) {
	const here = unix.AT_FDCWD
	switch c.n.call {
	case unix.SYS_OPEN:
		return c.opened(here, 0, c.int(1), uint32(c.arg(2)))
	case unix.SYS_CREAT:
		return c.opened(here, 0, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, uint32(c.arg(1)))
	case unix.SYS_OPENAT:
		return c.opened(c.int(0), 1, c.int(2), uint32(c.arg(3)))
	case unix.SYS_MKDIR:
		return 0, c.make(here, 0, unix.S_IFDIR|uint32(c.arg(1)), "")
	case unix.SYS_MKDIRAT:
		return 0, c.make(c.int(0), 1, unix.S_IFDIR|uint32(c.arg(2)), "")
	case unix.SYS_MKNOD:
		return 0, c.node(here, 0, uint32(c.arg(1)))
	case unix.SYS_MKNODAT:
		return 0, c.node(c.int(0), 1, uint32(c.arg(2)))
	case unix.SYS_SYMLINK:
		return 0, c.symlink(0, here, 1)
	case unix.SYS_SYMLINKAT:
		return 0, c.symlink(0, c.int(1), 2)
	case unix.SYS_LINK:
		return 0, c.hardLink(here, 0, here, 1, 0)
	case unix.SYS_LINKAT:
		return 0, c.hardLink(c.int(0), 1, c.int(2), 3, c.int(4))
	case unix.SYS_UNLINK:
		return 0, c.remove(here, 0, 0)
	case unix.SYS_RMDIR:
		return 0, c.remove(here, 0, unix.AT_REMOVEDIR)
	case unix.SYS_UNLINKAT:
		return 0, c.remove(c.int(0), 1, c.int(2))
	case unix.SYS_RENAME:
		return 0, c.rename(here, 0, here, 1, 0)
	case unix.SYS_RENAMEAT:
		return 0, c.rename(c.int(0), 1, c.int(2), 3, 0)
	case unix.SYS_RENAMEAT2:
		return 0, c.rename(c.int(0), 1, c.int(2), 3, uint32(c.arg(4)))
	}
	return 0, unix.ENOSYS
}

// at resolves a path of the caller's that stands for the name itself.
func (c *caller) at(dir, argument int) (*found, error) {
	path, err := c.path(argument)
	if err != nil {
		return nil, err
	}
	return c.resolve(dir, path, false)
}

// may says why a name can't be changed. Moved says that what is there, with all below
// it, would go or come.
func (c *caller) may(place string, moved bool) error {
	if !c.s.writable(place) || !strings.HasPrefix(place, "/") {
		return unix.EACCES
	}
	if c.s.keeps(place, moved) {
		return unix.EPERM
	}
	return nil
}

// keeps reports whether a place is a name of the workspace that stays as it is, and notes it.
func (s *supervisor) keeps(place string, moved bool) bool {
	name, err := filepath.Rel(s.spec.Workspace.Path, place)
	if err != nil || !filepath.IsLocal(name) {
		return false
	}
	kept := s.names.set.Covers(name)
	if kept && s.names.ours(s.spec.Workspace.Path, name) {
		kept = false
	}
	if moved && !kept && s.names.set.Leads(name) && !s.names.has(filepath.Join(s.spec.Workspace.Path, name)) {
		kept = true
	}
	if kept {
		s.names.refuse(name)
	}
	return kept
}

func (n *names) refuse(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.refused) < maxRefused && !slices.Contains(n.refused, name) {
		n.refused = append(n.refused, name)
	}
}

// fill fills in the report.
func (n *names) fill(r *Report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r.Refused, r.Made = slices.Clone(n.refused), slices.Clone(n.made)
}

// ours reports whether the repository that a name lies in, or its part for a working tree, was
// made by programs.
func (n *names) ours(workspace, name string) bool {
	repository, ok := n.set.Repository(name)
	if !ok {
		return false
	}
	for folder := name; len(folder) >= len(repository); folder = filepath.Dir(folder) {
		if n.has(filepath.Join(workspace, folder)) {
			return true
		}
	}
	return false
}

// has reports whether there is a folder of a repository that programs have made.
func (n *names) has(place string) bool {
	return len(n.own) > 0 && n.own[Which(unix.AT_FDCWD, place)]
}

// Which is which folder a name stands for, without its path; the zero Folder for none.
func Which(dir int, name string) Folder {
	var stat unix.Statx_t
	if unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &stat) != nil {
		return Folder{}
	}
	f := Folder{Dev: unix.Mkdev(stat.Dev_major, stat.Dev_minor), Ino: stat.Ino}
	if stat.Mask&unix.STATX_BTIME != 0 {
		f.Born = stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
	}
	return f
}

// note remembers a folder that the run has made in the place of nothing, if it is that of a
// repository or of a working tree of one.
func (n *names) note(folder int, base, place string) {
	if !strings.HasSuffix(base, ".git") && filepath.Base(filepath.Dir(place)) != "worktrees" {
		return
	}
	f := Which(folder, base)
	if f == (Folder{}) {
		return
	}
	n.own[f] = true
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.made) < maxOwn {
		n.made = append(n.made, f)
	}
}

// forget removes a deleted folder from the run's folders.
func (n *names) forget(f Folder) {
	if !n.own[f] {
		return
	}
	delete(n.own, f)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made = slices.DeleteFunc(n.made, func(other Folder) bool { return other == f })
}

// maxOwn bounds the folders in a report.
const maxOwn = 4096

// masked runs a call under the umask of the caller.
func (c *caller) masked(call func() error) error {
	old := unix.Umask(numberOf(c.pid, "Umask:", 8))
	defer unix.Umask(old)
	return call()
}

const (
	writes  = unix.O_WRONLY | unix.O_RDWR
	tmpfile = unix.O_TMPFILE &^ unix.O_DIRECTORY
)

// opened opens a file for the caller.
func (c *caller) opened(dir, argument, flags int, mode uint32) (int64, error) {
	if flags&unix.O_PATH != 0 {
		return 0, errGoOn // its other flags mean nothing, and nothing is changed by it
	}
	if flags&unix.O_CREAT != 0 && flags&unix.O_TMPFILE != 0 {
		return 0, unix.EINVAL // a file that is made is neither a folder nor without a name
	}
	exclusive := flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
	path, err := c.path(argument)
	if err != nil {
		return 0, err
	}
	f, err := c.resolve(dir, path, flags&unix.O_NOFOLLOW == 0 && !exclusive || strings.HasSuffix(path, "/"))
	if err != nil {
		return 0, err
	}
	switch {
	case f.object < 0 && flags&unix.O_CREAT == 0:
		err = unix.ENOENT
	case f.object < 0 && f.slash:
		err = unix.EISDIR
	case f.object < 0:
		if err = c.may(f.place(), false); err == nil {
			var n int
			if err = c.masked(func() (err error) {
				n, err = unix.Openat(f.folder, f.base, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, mode)
				return err
			}); err == nil {
				err = c.lend(n, flags)
			}
		}
	case exclusive:
		err = unix.EEXIST
	case f.kind() == unix.S_IFLNK:
		err = unix.ELOOP
	case f.cut():
		err = unix.ENOTDIR
	case f.kind() == unix.S_IFDIR && flags&unix.O_CREAT != 0:
		err = unix.EISDIR
	default:
		if err = c.mayOpen(f, flags); err != nil {
			break
		}
		if f.kind() == unix.S_IFIFO { // it may wait
			go func() {
				defer f.close()
				c.s.as()
				c.finish(0, c.reopen(f, flags, mode))
			}()
			return 0, errAnswered
		}
		err = c.reopen(f, flags, mode)
	}
	f.close()
	return 0, err
}

// mayOpen says why what is there can't be opened so.
func (c *caller) mayOpen(f *found, flags int) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(f.object, &fs); err != nil {
		return err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC || fs.Type == unix.SYSFS_MAGIC {
		return unix.EACCES
	}
	place := f.leads()
	switch {
	case place == "":
		return unix.EACCES
	case flags&(writes|unix.O_TRUNC|tmpfile) == 0:
		if !c.s.readable(place) && !c.s.device(place) {
			return unix.EACCES
		}
		return nil
	case c.s.device(place):
		return nil
	case !c.s.writable(place):
		return unix.EACCES
	case f.kind() != unix.S_IFIFO && c.s.keeps(place, false):
		return unix.EPERM
	}
	return nil
}

// reopen opens what was found, and no other thing that has its name by now.
func (c *caller) reopen(f *found, flags int, mode uint32) error {
	var n int
	open := func() (err error) {
		flags := flags &^ (unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW)
		n, err = unix.Open(object{file: f.object}.path(), flags|unix.O_CLOEXEC|unix.O_NOCTTY, mode)
		return err
	}
	var err error
	if flags&tmpfile != 0 {
		err = c.masked(open)
	} else {
		err = open()
	}
	if err != nil {
		return err
	}
	return c.lend(n, flags)
}

// lend gives the caller a descriptor as the answer of its call.
func (c *caller) lend(n, flags int) error {
	defer unix.Close(n)
	if flags&unix.O_NONBLOCK == 0 {
		if now, err := unix.FcntlInt(uintptr(n), unix.F_GETFL, 0); err == nil && now&unix.O_NONBLOCK != 0 {
			_, _ = unix.FcntlInt(uintptr(n), unix.F_SETFL, now&^unix.O_NONBLOCK) // of a file it means nothing
		}
	}
	add := struct {
		id               uint64
		flags, from      uint32
		to, closeOnExecs uint32
	}{id: c.n.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(n), closeOnExecs: uint32(flags & unix.O_CLOEXEC)}
	e := ioctl(c.listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&add))
	if e == unix.EINVAL { // before Linux 5.14 it is two steps
		add.flags = 0
		got, _, failed := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_ADDFD, uintptr(unsafe.Pointer(&add)))
		if e = failed; e == 0 {
			c.finish(int64(got), nil)
		}
	}
	if e != 0 && e != unix.ENOENT { // the caller was killed meanwhile
		return e
	}
	return errAnswered
}

// make makes a folder, a link, or another node.
func (c *caller) make(dir, argument int, mode uint32, target string) error {
	f, err := c.at(dir, argument)
	if err != nil {
		return err
	}
	defer f.close()
	kind := mode & unix.S_IFMT
	switch {
	case f.object >= 0:
		return unix.EEXIST
	case f.slash && kind != unix.S_IFDIR:
		return unix.ENOENT
	}
	place := f.place()
	if err := c.may(place, kind == unix.S_IFLNK); err != nil {
		return err
	}
	return c.masked(func() error {
		switch kind {
		case unix.S_IFDIR:
			err := unix.Mkdirat(f.folder, f.base, mode&^unix.S_IFMT)
			if err == nil {
				c.s.names.note(f.folder, f.base, place)
			}
			return err
		case unix.S_IFLNK:
			return unix.Symlinkat(target, f.folder, f.base)
		}
		return unix.Mknodat(f.folder, f.base, mode, 0)
	})
}

// node makes what is no device.
func (c *caller) node(dir, argument int, mode uint32) error {
	if kind := mode & unix.S_IFMT; kind == 0 {
		mode |= unix.S_IFREG
	} else if kind != unix.S_IFREG && kind != unix.S_IFIFO && kind != unix.S_IFSOCK {
		return unix.EPERM
	}
	return c.make(dir, argument, mode, "")
}

func (c *caller) symlink(target, dir, argument int) error {
	text, err := c.path(target)
	if err != nil {
		return err
	}
	if text == "" {
		return unix.ENOENT
	}
	return c.make(dir, argument, unix.S_IFLNK, text)
}

// hardLink gives a file a further name. What stays as it is gets none.
func (c *caller) hardLink(fromDir, from, toDir, to, flags int) error {
	path, err := c.path(from)
	if err != nil {
		return err
	}
	var old *found
	if path == "" && flags&unix.AT_EMPTY_PATH != 0 {
		old = &found{folder: -1, object: -1}
		if old.object, err = unix.Open(c.descriptorOf(fromDir), unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
			err = unix.Fstat(old.object, &old.stat)
		}
		if err == nil && !c.valid() {
			err = unix.EINTR
		}
	} else {
		old, err = c.resolve(fromDir, path, flags&unix.AT_SYMLINK_FOLLOW != 0 || strings.HasSuffix(path, "/"))
	}
	if old != nil {
		defer old.close()
	}
	if err != nil {
		return err
	}
	if old.object < 0 {
		return unix.ENOENT
	}
	if old.cut() {
		return unix.ENOTDIR
	}
	if old.kind() == unix.S_IFDIR {
		return unix.EPERM
	}
	if err := c.may(old.leads(), false); err != nil {
		return err
	}
	f, err := c.at(toDir, to)
	if err != nil {
		return err
	}
	defer f.close()
	if f.object >= 0 {
		return unix.EEXIST
	}
	if f.slash {
		return unix.ENOENT
	}
	if err := c.may(f.place(), true); err != nil {
		return err
	}
	if old.kind() == unix.S_IFLNK && old.base != "" {
		return unix.Linkat(old.folder, old.base, f.folder, f.base, 0)
	}
	return unix.Linkat(unix.AT_FDCWD, object{file: old.object}.path(), f.folder, f.base, unix.AT_SYMLINK_FOLLOW)
}

// remove removes a name.
func (c *caller) remove(dir, argument, flags int) error {
	f, err := c.at(dir, argument)
	if err != nil {
		return err
	}
	defer f.close()
	switch {
	case f.base == "":
		return unix.EBUSY
	case f.object < 0:
		return unix.ENOENT
	case f.slash && flags&unix.AT_REMOVEDIR == 0:
		return unix.ENOTDIR
	}
	if err := c.may(f.place(), false); err != nil {
		return err
	}
	gone := Folder{}
	if flags&unix.AT_REMOVEDIR != 0 && len(c.s.names.own) > 0 {
		gone = Which(f.folder, f.base)
	}
	err = unix.Unlinkat(f.folder, f.base, flags)
	if err == nil {
		c.s.names.forget(gone)
	}
	return err
}

// rename moves a name to another one.
func (c *caller) rename(fromDir, from, toDir, to int, flags uint32) error {
	old, err := c.at(fromDir, from)
	if err != nil {
		return err
	}
	defer old.close()
	f, err := c.at(toDir, to)
	if err != nil {
		return err
	}
	defer f.close()
	switch {
	case old.base == "" || f.base == "":
		return unix.EBUSY
	case old.object < 0:
		return unix.ENOENT
	case (old.slash || f.slash) && old.kind() != unix.S_IFDIR:
		return unix.ENOTDIR
	}
	for _, place := range []string{old.place(), f.place()} {
		if err := c.may(place, true); err != nil {
			return err
		}
	}
	return unix.Renameat2(old.folder, old.base, f.folder, f.base, uint(flags))
}

// device reports whether a place is a node that every program may use.
func (s *supervisor) device(place string) bool {
	return slices.Contains(devices, place) || s.spec.Tier == Namespaces && below(place, []string{"/dev/pts"})
}
