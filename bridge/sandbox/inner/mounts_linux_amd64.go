package inner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
)

// Places of the file tree of tier N.
const (
	oldRoot = "/.old" // the server's tree while the new one is made
	// tmpFolder is for temporary files, homeFolder the home of the tool.
	tmpFolder  = "/tmp"
	homeFolder = "/tmp/home"
	// checkFile is there for checks alone, and is unreadable.
	checkFile = "/.check"
	// smallestPIDMax is the smallest the kernel takes.
	smallestPIDMax = 301
	// defaultTmpBytes bounds each of /tmp and /dev/shm.
	defaultTmpBytes = 256 << 20
)

// systemFolders are seen as they are, read-only.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"}

// systemFiles are what programs look up in /etc. Whatever else is there may be secret.
var systemFiles = []string{
	"/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/debian_version",
	"/etc/fonts", "/etc/gai.conf", "/etc/gitconfig", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/inputrc", "/etc/ld.so.cache",
	"/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/localtime", "/etc/magic", "/etc/magic.mime",
	"/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/perl", "/etc/pki", "/etc/profile",
	"/etc/protocols", "/etc/python3", "/etc/python3.11", "/etc/resolv.conf", "/etc/rpc", "/etc/services", "/etc/shells",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone", "/etc/xattr.conf",
}

// systemGlobs are further ones whose names have a version in them.
var systemGlobs = []string{"/etc/java-*", "/etc/python*"}

// devices are the nodes that every program may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// mountBase makes the tree that the tool sees and leaves the server's behind. The old one
// moves out of the way first: else what lies below /tmp would disappear.
func (s *supervisor) mountBase() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	// Without times of access: while one is written, the tree can't become read-only.
	if err := unix.Mount("tmpfs", tmpFolder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, "mode=755,size=4m"); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if err := os.Chdir(tmpFolder); err != nil {
		return err
	}
	if err := os.Mkdir("."+oldRoot, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."+oldRoot); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	for _, part := range []func() error{s.mountTmp, s.mountSystem, s.mountDevices, s.mountWorkspace, s.mountProc} {
		if err := part(); err != nil {
			return err
		}
	}
	if err := unix.Unmount(oldRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := os.Remove(oldRoot); err != nil {
		return err
	}
	if s.spec.with(LayerIPC) {
		_ = unix.Sethostname([]byte("sandbox")) // a nicety
	}
	return nil
}

// mountJob protects and hides what is in the workspace as the job begins, and makes the rest
// read-only.
func (s *supervisor) mountJob() error {
	root, err := unix.Open(s.spec.Workspace.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	defer unix.Close(root)
	for _, path := range commands.AtTop(s.spec.Protect) {
		if err := protect(root, path); err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
	}
	if err := s.hide(root); err != nil {
		return err
	}
	if err := s.closeProc(); err != nil {
		return err
	}
	if s.spec.Check != nil {
		if err := os.WriteFile(checkFile, nil, 0o644); err != nil {
			return err
		}
	}
	return setAttributes("/", unix.MOUNT_ATTR_RDONLY, 0)
}

func (s *supervisor) mountSystem() error {
	places := append(append([]string{}, systemFolders...), systemFiles...)
	for _, pattern := range systemGlobs {
		found, _ := filepath.Glob(oldRoot + pattern) // the patterns are well formed
		for _, f := range found {
			places = append(places, strings.TrimPrefix(f, oldRoot))
		}
	}
	for _, place := range append(places, s.spec.Read...) {
		if err := show(place, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return err
		}
	}
	for _, place := range s.spec.Write {
		if err := show(place, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return err
		}
	}
	return nil
}

// show puts a place of the old tree into the new one; a missing one is skipped. A link is
// made again, and resolves in the new tree.
func show(place string, attributes uint64) error {
	old := oldRoot + place
	info, err := os.Lstat(old)
	if err != nil {
		return nil // what can't be seen is not shown
	}
	if _, err := os.Lstat(place); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return fmt.Errorf("show %s: %w", place, err)
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return showLink(old, place, attributes)
	}
	if err := point(place, info.IsDir()); err != nil {
		return fmt.Errorf("show %s: %w", place, err)
	}
	if err := bind(unix.AT_FDCWD, old, place, attributes); err != nil {
		return fmt.Errorf("show %s: %w", place, err)
	}
	return nil
}

// showLink makes a link as it is when it stays within the system's folders, else shows
// what it leads to under its own name, as /etc/resolv.conf may lead to /run.
func showLink(old, place string, attributes uint64) error {
	to, err := os.Readlink(old)
	if err != nil {
		return nil // gone since
	}
	target := to
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(place), to)
	}
	for _, folder := range append([]string{"/etc/alternatives"}, systemFolders...) {
		if target == folder || strings.HasPrefix(target, folder+"/") {
			return os.Symlink(to, place)
		}
	}
	info, err := os.Stat(oldRoot + target)
	if err != nil || info.IsDir() {
		return nil // it leads nowhere
	}
	if err := point(place, false); err != nil {
		return err
	}
	return bind(unix.AT_FDCWD, oldRoot+target, place, attributes)
}

// point makes what a mount is put on.
func point(place string, folder bool) error {
	if folder {
		return os.MkdirAll(place, 0o755)
	}
	file, err := os.OpenFile(place, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// bind mounts a copy of a tree elsewhere, with attributes laid over it.
func bind(dir int, from, to string, attributes uint64) error {
	tree, err := clone(dir, from)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := attribute(tree, attributes); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func clone(dir int, path string) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_SYMLINK_NOFOLLOW)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	tree, err := unix.OpenTree(dir, path, flags)
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", err)
	}
	return tree, nil
}

func attribute(tree int, set uint64) error {
	err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: set})
	if err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return nil
}

// setAttributes changes the attributes of one mount, not of mounts below it.
func setAttributes(place string, set, clr uint64) error {
	err := unix.MountSetattr(unix.AT_FDCWD, place, 0, &unix.MountAttr{Attr_set: set, Attr_clr: clr})
	if err != nil {
		return fmt.Errorf("mount_setattr %s: %w", place, err)
	}
	return nil
}

func (s *supervisor) mountDevices() error {
	for _, folder := range []string{"/dev", "/dev/shm", "/dev/pts"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, node := range devices {
		if err := show(node, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, s.tmpOptions()); err != nil {
		return fmt.Errorf("/dev/shm: %w", err)
	}
	// Terminals are a comfort: without them the rest works.
	if unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") == nil {
		_ = os.Symlink("pts/ptmx", "/dev/ptmx")
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (s *supervisor) tmpOptions() string {
	size := s.spec.Limits.Scratch
	if size <= 0 {
		size = defaultTmpBytes
	}
	return "mode=1777,size=" + strconv.FormatInt(size, 10)
}

func (s *supervisor) mountTmp() error {
	for _, folder := range []string{tmpFolder, "/var", "/run"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", tmpFolder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, s.tmpOptions()); err != nil {
		return fmt.Errorf("%s: %w", tmpFolder, err)
	}
	if err := os.Symlink("../tmp", "/var/tmp"); err != nil {
		return err
	}
	if err := os.Mkdir(homeFolder, 0o700); err != nil {
		return err
	}
	if s.spec.UID == unix.Geteuid() {
		return nil
	}
	return os.Chown(homeFolder, s.spec.UID, s.spec.GID)
}

// mountWorkspace shows the workspace at its own place. A descriptor of the server's
// can't be mounted here, so its name is looked up again and compared.
func (s *supervisor) mountWorkspace() error {
	w := s.spec.Workspace
	tree, err := clone(unix.AT_FDCWD, oldRoot+w.Path)
	if err != nil {
		return fmt.Errorf("workspace %s: %w", w.Path, err)
	}
	defer unix.Close(tree)
	var stat unix.Stat_t
	if err := unix.Fstat(tree, &stat); err != nil {
		return err
	}
	if stat.Dev != w.Dev || stat.Ino != w.Ino {
		return fmt.Errorf("workspace %s: another folder has taken its place", w.Path)
	}
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if s.spec.ReadOnly {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	if err := attribute(tree, attributes); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if err := os.MkdirAll(w.Path, 0o755); err != nil {
		return err
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, w.Path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	return nil
}

// within opens a path of the workspace without following links: a process that filled the
// workspace must not choose the mounted object.
func within(root int, path string) (int, error) {
	return unix.Openat2(root, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// protect makes a path read-only, and its parents so that they can't be moved away with
// it: a mount can't be renamed. What the supervisor keeps the kernel then keeps, too, where
// there is something to be kept.
func protect(root int, path string) error {
	parts := strings.Split(path, "/")
	for i := range parts {
		last := i == len(parts)-1
		file, err := within(root, strings.Join(parts[:i+1], "/"))
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			return nil // there is nothing of that name to protect
		}
		if err != nil {
			return err
		}
		err = remount(file, last)
		_ = unix.Close(file)
		if err != nil {
			return err
		}
	}
	return nil
}

// remount mounts something on itself.
func remount(file int, readOnly bool) error {
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return err
	}
	if kind := stat.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR || kind == unix.S_IFREG && !readOnly {
		return nil
	}
	tree, err := clone(file, "")
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if readOnly {
		if err := attribute(tree, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	return unix.MoveMount(tree, "", file, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// hide lays an empty folder, or an empty file, over places that the tool must not see.
func (s *supervisor) hide(root int) error {
	for _, place := range s.spec.Hide {
		path, err := filepath.Rel(s.spec.Workspace.Path, place)
		if err != nil || !filepath.IsLocal(path) {
			continue // it is not in the tree at all
		}
		if err := hide(root, path); err != nil {
			return fmt.Errorf("hide %s: %w", place, err)
		}
	}
	return nil
}

func hide(root int, path string) error {
	parents := strings.Split(path, "/")
	for i := range parents[:len(parents)-1] {
		parent, err := within(root, strings.Join(parents[:i+1], "/"))
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		if err != nil {
			return err
		}
		err = remount(parent, false)
		_ = unix.Close(parent)
		if err != nil {
			return err
		}
	}
	file, err := within(root, path)
	if errors.Is(err, unix.ENOENT) {
		return nil // there is nothing of that name to hide
	}
	if err != nil {
		return err
	}
	defer unix.Close(file)
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return hideFile(file)
	}
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "mode", "555"); err != nil {
		return err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	return unix.MoveMount(mount, "", file, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// emptyFile and emptyFolder are mounted over hidden paths.
const (
	emptyFile   = "/.empty"
	emptyFolder = "/.nothing"
)

// hideFile lays an empty file over another one.
func hideFile(file int) error {
	if err := point(emptyFile, false); err != nil {
		return err
	}
	tree, err := clone(unix.AT_FDCWD, emptyFile)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := attribute(tree, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", file, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// mountProc shows the processes of the sandbox. Containers that mask parts of /proc
// allow no new one; the old one then shows, read-only, what its own namespace has.
func (s *supervisor) mountProc() error {
	if err := os.MkdirAll("/proc", 0o555); err != nil {
		return err
	}
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	return maskProc()
}

// shownProc lists the files that /proc shows in addition to processes; the rest belongs to
// the machine: symbols, keys, memory and settings of the kernel.
var shownProc = []string{
	"cgroups", "cpuinfo", "diskstats", "filesystems", "loadavg", "meminfo", "mounts", "net", "self", "stat", "swaps", "sys", "thread-self",
	"uptime", "version", "vmstat",
}

// maskProc lays something empty over what else there is in /proc.
func maskProc() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := os.MkdirAll(emptyFolder, 0o555); err != nil {
		return err
	}
	if err := point(emptyFile, false); err != nil {
		return err
	}
	const attributes = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil || slices.Contains(shownProc, e.Name()) || e.Type()&os.ModeSymlink != 0 {
			continue
		}
		empty := emptyFile
		if e.IsDir() {
			empty = emptyFolder
		}
		if err := bind(unix.AT_FDCWD, empty, "/proc/"+e.Name(), attributes); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("/proc/%s: %w", e.Name(), err)
		}
	}
	return nil
}

// closeProc bounds the processes of the job and makes /proc read-only.
func (s *supervisor) closeProc() error {
	if n := s.spec.Limits.Processes; n > 0 && s.spec.with(LayerPID) && ownPIDMax() {
		_ = os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(max(n+2, smallestPIDMax))), 0) // the watch counts, too
	}
	return setAttributes("/proc", unix.MOUNT_ATTR_RDONLY, 0)
}

// ownPIDMax reports whether each pid namespace has a pid_max. Before Linux 6.14 there is one
// for the machine, and a root server's first stage could write it; only the version shows it
// without writing.
func ownPIDMax() bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 14
}
