package attack

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fileAttacks are those on files.
var fileAttacks = map[string]attempt{
	"read-outside": func(w World) error { return reads(w.out("secret")) },
	"read-dotdot":  func(World) error { return reads("../outside/secret") },
	"read-symlink": func(w World) error {
		if err := os.Symlink(w.out("secret"), w.work("link")); err != nil {
			return err
		}
		return reads(w.work("link"))
	},
	"read-self-root":   func(w World) error { return reads("/proc/self/root" + w.out("secret")) },
	"read-pid-root":    func(w World) error { return reads(w.proc("root") + w.out("secret")) },
	"read-pid-cwd":     func(w World) error { return reads(w.proc("cwd/secret")) },
	"read-shadow":      func(World) error { return reads("/etc/shadow") },
	"read-home":        func(World) error { return opens("/root", unix.O_RDONLY) },
	"read-other-agent": func(w World) error { return reads(filepath.Join(w.Other, "secret")) },
	"read-devshm":      func(w World) error { return reads(w.Shm) },
	"read-environ":     func(w World) error { return reads(w.proc("environ")) },
	"read-cmdline":     func(w World) error { return reads(w.proc("cmdline")) },
	"read-mem":         func(w World) error { return opens(w.proc("mem"), unix.O_RDONLY) },
	"list-outside":     func(w World) error { return opens(w.Outside, unix.O_RDONLY|unix.O_DIRECTORY) },
	"list-root-home":   func(World) error { return opens("/home", unix.O_RDONLY|unix.O_DIRECTORY) },
	"write-outside":    func(w World) error { return os.WriteFile(w.out("new"), nil, 0o644) },
	"append-outside":   func(w World) error { return opens(w.out("secret"), unix.O_WRONLY|unix.O_APPEND) },
	"mkdir-outside":    func(w World) error { return os.Mkdir(w.out("made"), 0o755) },
	"symlink-outside":  func(w World) error { return os.Symlink("x", w.out("linked")) },
	"truncate-outside": func(w World) error { return os.Truncate(w.out("trunc"), 0) },
	"unlink-outside":   func(w World) error { return os.Remove(w.out("unlink")) },
	"rename-out": func(w World) error {
		if err := os.WriteFile(w.work("mine"), nil, 0o644); err != nil {
			return err
		}
		return os.Rename(w.work("mine"), w.out("theirs"))
	},
	"read-proc-fd":   func(w World) error { return reads(w.proc("fd/3")) },
	"read-init-root": func(w World) error { return reads("/proc/1/root" + w.out("secret")) },
	"read-proc-map":  func(w World) error { return reads(w.proc("maps")) },
	"hardlink-in":    func(w World) error { return os.Link(w.out("hard"), w.work("hard")) },
	"exec-outside": func(w World) error {
		_, err := syscall.ForkExec(w.out("program"), []string{"x"}, &syscall.ProcAttr{})
		if errors.Is(err, unix.ENOEXEC) {
			return nil // it is no program, but was read as one
		}
		return err
	},
	"chmod-outside": func(w World) error { return os.Chmod(w.out("meta"), 0o600) },
	"chmod-outside-fd": func(w World) error {
		n, err := unix.Open(w.out("meta"), unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(n), 0o640, 0)
	},
	"fchmodat2-outside": func(w World) error {
		_, _, e := unix.Syscall6(unix.SYS_FCHMODAT2, ^uintptr(99), text(w.out("meta")), 0o640, 0, 0, 0)
		return orNil(e)
	},
	"chown-outside":   func(w World) error { return os.Chown(w.out("meta"), os.Getuid(), os.Getgid()) },
	"lchown-outside":  func(w World) error { return os.Lchown(w.out("meta"), os.Getuid(), os.Getgid()) },
	"utime-outside":   func(w World) error { return os.Chtimes(w.out("meta"), time.Unix(1, 0), time.Unix(1, 0)) },
	"xattr-outside":   func(w World) error { return unix.Setxattr(w.out("meta"), "user.x", []byte("y"), 0) },
	"inotify-outside": watchesOutside,
	"stat-outside":    func(w World) error { _, err := os.Stat(w.out("secret")); return err },
	"race-symlink": func(w World) error {
		return race(w, func(p string) bool { b, err := os.ReadFile(p); return err == nil && len(b) > 0 })
	},
	"dotenv": func(w World) error { return os.WriteFile(w.work(".env"), []byte("x"), 0o644) },
	"dotenv-replace": func(w World) error {
		if err := os.WriteFile(w.work("env2"), nil, 0o644); err != nil {
			return err
		}
		return os.Rename(w.work("env2"), w.work(".env"))
	},
	"dotenv-hardlink": func(w World) error {
		if err := os.Link(w.work(".env"), w.work("env3")); err != nil {
			return err
		}
		return opens(w.work("env3"), unix.O_WRONLY)
	},
	"gitconfig": func(w World) error { return opens(w.work(".git/config"), unix.O_WRONLY) },
	"githook":   func(w World) error { return os.WriteFile(w.work(".git/hooks/post-commit"), nil, 0o755) },
	"dotenv-exchange": func(w World) error {
		if err := os.WriteFile(w.work("env4"), nil, 0o644); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, w.work("env4"), unix.AT_FDCWD, w.work(".env"), unix.RENAME_EXCHANGE)
	},
	"dotenv-reopen": func(w World) error {
		n, err := unix.Open(w.work(".env"), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return opens("/proc/self/fd/"+strconv.Itoa(n), unix.O_WRONLY)
	},
	"new-envrc":   func(w World) error { return os.WriteFile(w.work(".envrc"), []byte("x"), 0o644) },
	"new-vscode":  func(w World) error { return os.MkdirAll(w.work(".vscode/deep"), 0o755) },
	"commondir":   func(w World) error { return os.WriteFile(w.work(".git/commondir"), []byte("../other"), 0o644) },
	"new-by-link": func(w World) error { return os.Symlink("/etc/passwd", w.work(".bashrc")) },
	"new-by-rename": func(w World) error {
		if err := os.WriteFile(w.work("mcp"), nil, 0o644); err != nil {
			return err
		}
		return os.Rename(w.work("mcp"), w.work(".mcp.json"))
	},
	"read-store":     func(w World) error { return reads(w.Store) },
	"write-store":    func(w World) error { return opens(w.Store, unix.O_WRONLY|unix.O_APPEND) },
	"list-store":     func(w World) error { return opens(filepath.Dir(w.Store), unix.O_RDONLY|unix.O_DIRECTORY) },
	"open-helper":    opensHelper,
	"environ-helper": func(w World) error { return reads(w.helper("environ")) },
	"githook-rename": func(w World) error { return os.Rename(w.work(".git"), w.work("git2")) },
	"race-chmod":     raceChmod,
	"suid-bit":       func(w World) error { return withFile(w, func(p string) error { return unix.Chmod(p, 0o4755) }) },
	"suid-creat": func(w World) error {
		n, err := unix.Open(w.work("suid"), unix.O_CREAT|unix.O_WRONLY, 0o6755)
		if err == nil {
			_ = unix.Close(n)
		}
		return err
	},
	"suid-mknod":      func(w World) error { return unix.Mknod(w.work("suid2"), unix.S_IFREG|0o4755, 0) },
	"mknod":           func(w World) error { return unix.Mknod(w.work("node"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
	"device":          func(World) error { return opens("/dev/kmsg", unix.O_WRONLY) },
	"device-disk":     func(World) error { return opens("/dev/loop-control", unix.O_RDONLY) },
	"procsys-write":   func(World) error { return opens("/proc/sys/kernel/core_pattern", unix.O_WRONLY) },
	"sysrq-write":     func(World) error { return opens("/proc/sysrq-trigger", unix.O_WRONLY) },
	"sysfs-write":     func(World) error { return opens("/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY) },
	"sysfs-list":      func(World) error { return opens("/sys/class", unix.O_RDONLY|unix.O_DIRECTORY) },
	"cgroup-write":    func(World) error { return writesCgroup() },
	"cgroup-list":     func(World) error { return opens("/sys/fs/cgroup", unix.O_RDONLY|unix.O_DIRECTORY) },
	"proc-oomadj":     func(w World) error { return opens(w.proc("oom_score_adj"), unix.O_WRONLY) },
	"proc-autogroup":  func(w World) error { return opens(w.proc("autogroup"), unix.O_WRONLY) },
	"proc-refs":       func(w World) error { return opens(w.proc("clear_refs"), unix.O_WRONLY) },
	"proc-victim-fd":  func(w World) error { return opens(w.proc("fd"), unix.O_RDONLY|unix.O_DIRECTORY) },
	"proc-oomself":    func(World) error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-500"), 0) },
	"write-usr":       func(World) error { return os.WriteFile("/usr/lib/loom-attack", nil, 0o644) },
	"write-etc":       func(World) error { return opens("/etc/passwd", unix.O_WRONLY) },
	"write-root":      func(World) error { return os.WriteFile("/loom-attack", nil, 0o644) },
	"chmod-system":    func(World) error { return os.Chmod("/usr/bin/env", 0o755) },
	"truncate-system": func(World) error { return opens("/etc/passwd", unix.O_RDWR) },
}

func orNil(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func withFile(w World, do func(path string) error) error {
	path := w.work("file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return do(path)
}

func watchesOutside(w World) error {
	n, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(n, w.Outside, unix.IN_ALL_EVENTS)
	return err
}

// race swaps a link between a file inside and one outside while it is used.
func race(w World, reached func(path string) bool) error {
	inside, link := w.work("inside"), w.work("raced")
	if err := os.WriteFile(inside, nil, 0o644); err != nil {
		return err
	}
	end := time.Now().Add(150 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for time.Now().Before(end) {
			for _, to := range []string{inside, w.out("secret")} {
				_ = os.Symlink(to, link+"2")
				_ = os.Rename(link+"2", link)
			}
		}
	}()
	for time.Now().Before(end) {
		if reached(link) {
			return nil
		}
	}
	<-done
	return errStopped
}

// raceChmod swaps a link while its mode is changed.
func raceChmod(w World) error {
	inside, link := w.work("inside2"), w.work("raced2")
	if err := os.WriteFile(inside, nil, 0o644); err != nil {
		return err
	}
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			for _, to := range []string{inside, w.out("raced")} {
				_ = os.Symlink(to, link+"2")
				_ = os.Rename(link+"2", link)
			}
		}
	}()
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
		_ = os.Chmod(link, 0o640)
	}
	over.Store(true)
	<-done
	info, err := os.Stat(w.out("raced"))
	if err == nil && info.Mode() != 0o640 {
		return errStopped
	}
	return err
}

// opensHelper opens what the first stage has open.
func opensHelper(w World) error {
	err := errStopped
	for n := range 16 {
		if err = opens(w.helper("fd/"+strconv.Itoa(n)), unix.O_RDWR); err == nil {
			return nil
		}
	}
	return err
}

func writesCgroup() error {
	err := errStopped
	for _, place := range []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs"} {
		if err = opens(place, unix.O_WRONLY); err == nil {
			return nil
		}
	}
	return err
}
