package inner

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock, by what they are for.
const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsExec = rightsRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsAll1 = 1<<13 - 1 // rights of the first ABI
	// rightsFile are the rights that a file, not a folder, can have.
	rightsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// rightsNode are the rights of the devices that every process may use.
	rightsNode = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// rightsMake are the rights to make device nodes.
	rightsMake = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// LandlockABI returns the ABI of the kernel; 0 without Landlock.
func LandlockABI() int {
	n, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(n)
}

// handled are the rights that an ABI knows: all of them are taken away.
func handled(abi int) uint64 {
	rights := uint64(rightsAll1)
	for _, later := range []struct {
		since int
		right uint64
	}{
		{2, unix.LANDLOCK_ACCESS_FS_REFER},
		{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		if abi >= later.since {
			rights |= later.right
		}
	}
	return rights
}

// ruleset is a set of rules in the making.
type ruleset struct {
	file    int
	handled uint64
}

// rules makes the set of what the tools of a base may touch.
func (c *confined) rules() (*ruleset, error) {
	abi := LandlockABI()
	if abi == 0 {
		return nil, errors.New("the kernel has none")
	}
	if c.spec.ABI > 0 {
		abi = min(abi, c.spec.ABI)
	}
	c.abi = abi
	set := ruleset{handled: handled(abi)}
	attr := unix.LandlockRulesetAttr{Access_fs: set.handled}
	size := unsafe.Sizeof(attr.Access_fs)
	if abi >= 4 && !c.spec.with(LayerNet) {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = unsafe.Sizeof(attr.Access_fs) + unsafe.Sizeof(attr.Access_net)
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = unsafe.Sizeof(attr)
	}
	n, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return nil, fmt.Errorf("create: %w", e)
	}
	set.file = int(n)
	unix.CloseOnExec(set.file)
	return &set, c.fill(set)
}

// allow gives rights below places.
func (r ruleset) allow(rights uint64, places ...string) (err error) {
	for _, place := range places {
		err = errors.Join(err, r.add(place, rights))
	}
	return err
}

// fill adds the rules.
func (c *confined) fill(set ruleset) error {
	workspace := set.handled &^ rightsMake
	if c.spec.ReadOnly {
		workspace = rightsExec
	}
	var globbed []string
	for _, pattern := range systemGlobs {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		globbed = append(globbed, found...)
	}
	err := errors.Join(
		set.allow(rightsExec, systemFolders...), set.allow(rightsRead, systemFiles...), set.allow(rightsRead, globbed...),
		set.allow(rightsExec, c.spec.Read...), set.allow(set.handled&^rightsMake, c.spec.Write...),
		set.allow(rightsNode, devices...), set.allow(workspace, c.spec.Workspace.Path),
	)
	if c.spec.Tier == Landlock {
		return errors.Join(err, set.allow(rightsRead, publicProc...))
	}
	// Without the right to list /, `ls /` fails; nothing is there but what is shown.
	return errors.Join(err,
		set.allow(unix.LANDLOCK_ACCESS_FS_READ_DIR, "/"), set.allow(rightsRead|unix.LANDLOCK_ACCESS_FS_WRITE_FILE, "/proc"),
		set.allow(rightsRead|rightsNode, "/dev/pts"), set.allow(set.handled&^rightsMake, tmpFolder, "/dev/shm"))
}

// publicProc is what /proc says of the machine, without processes.
var publicProc = []string{
	"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version", "/proc/filesystems",
	"/proc/sys/kernel/osrelease", "/proc/sys/kernel/ngroups_max", "/proc/sys/vm/overcommit_memory",
	"/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible", "/sys/kernel/mm/transparent_hugepage/enabled",
}

// add gives rights below a place; a missing one is skipped.
func (r ruleset) add(place string, rights uint64) error {
	if place == "" {
		return nil
	}
	file, err := unix.Open(place, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	defer unix.Close(file)
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(file)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.file), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if e != 0 {
		return fmt.Errorf("%s: %w", place, e)
	}
	return nil
}
