package inner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxLinks = 40
	// lookup opens a thing as a place, links themselves among them.
	lookup = unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW
)

// found is where a path of the caller's leads: a folder and a name in it, each looked up
// once, so that nothing that is swapped meanwhile leads elsewhere.
type found struct {
	folder int    // an O_PATH descriptor; -1 where the path names no folder to be in
	base   string // the name in the folder; empty for what has none, such as the root
	object int    // what is there, an O_PATH descriptor; -1 for nothing
	stat   unix.Stat_t
	slash  bool // a slash stood behind it: it must be a folder
}

func (f *found) close() {
	for _, n := range []int{f.folder, f.object} {
		if n >= 0 {
			_ = unix.Close(n)
		}
	}
}

func (f *found) kind() uint32 { return f.stat.Mode & unix.S_IFMT }

// cut reports whether the path goes on behind what is no folder.
func (f *found) cut() bool { return f.slash && f.object >= 0 && f.kind() != unix.S_IFDIR }

// place is the path of the name itself, as it is now.
func (f *found) place() string {
	if f.base == "" {
		return where(object{file: f.object})
	}
	folder := where(object{file: f.folder})
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, f.base)
}

// leads is the path of what is there, links followed.
func (f *found) leads() string { return where(object{file: f.object}) }

// resolve finds what a path of the caller's means to the caller: /proc/self is the caller,
// not the supervisor. A link at its end is followed if that is asked for; a slash behind one
// asks for it, but not of calls that make, remove or move the name itself.
func (c *caller) resolve(dir int, path string, follow bool) (*found, error) {
	if path == "" {
		return nil, unix.ENOENT
	}
	start := "/"
	if !strings.HasPrefix(path, "/") {
		start = c.descriptorOf(dir)
	}
	at, err := unix.Open(start, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, badDescriptor(err)
	}
	if !c.valid() {
		_ = unix.Close(at)
		return nil, unix.EINTR // the opened file may be another process's
	}
	f := &found{folder: at, object: -1, slash: strings.HasSuffix(path, "/")}
	rest := split(path)
	// Most paths have no link in their folders, and the kernel goes there in one step.
	if n := len(rest); n > 1 {
		folder, err := unix.Openat2(at, strings.Join(rest[:n-1], "/"), &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if err == nil {
			_ = unix.Close(at)
			f.folder, rest = folder, rest[n-1:]
		}
	}
	if err := c.walk(f, rest, follow); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// descriptorOf is the place of one of the caller's own descriptors.
func (c *caller) descriptorOf(n int) string {
	if n == unix.AT_FDCWD {
		return "/proc/" + strconv.Itoa(c.pid) + "/cwd"
	}
	return "/proc/" + strconv.Itoa(c.pid) + "/fd/" + strconv.Itoa(n)
}

// split are the segments of a path. A dot at its end stays: it enters what it stands in,
// which must be a folder.
func split(path string) []string {
	var parts []string
	dot := false
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			continue
		}
		if dot = part == "."; !dot {
			parts = append(parts, part)
		}
	}
	if dot {
		parts = append(parts, ".")
	}
	return parts
}

// walk goes on from the folder of what was found, segment by segment.
func (c *caller) walk(f *found, rest []string, follow bool) error {
	links := 0
	enter := func(folder int) {
		_ = unix.Close(f.folder)
		f.folder = folder
	}
	for len(rest) > 0 {
		name, last := rest[0], len(rest) == 1
		rest = rest[1:]
		n, err := unix.Openat(f.folder, name, lookup, 0)
		if errors.Is(err, unix.ENOENT) && last {
			f.base = name
			return nil
		}
		if err != nil {
			return err
		}
		if err := unix.Fstat(n, &f.stat); err != nil {
			_ = unix.Close(n)
			return err
		}
		switch {
		case name == "..", name == ".":
			enter(n)
		case f.kind() == unix.S_IFLNK && (!last || follow):
			if links++; links > maxLinks {
				_ = unix.Close(n)
				return unix.ELOOP
			}
			to, through, err := c.link(f.folder, n, name)
			_ = unix.Close(n)
			if err != nil {
				return err
			}
			if through >= 0 {
				if last {
					f.object = through
					return unix.Fstat(through, &f.stat)
				}
				enter(through)
				continue
			}
			if strings.HasPrefix(to, "/") {
				root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
				if err != nil {
					return err
				}
				enter(root)
			}
			if last && strings.HasSuffix(to, "/") {
				f.slash = true
			}
			rest = append(split(to), rest...)
		case last:
			f.base, f.object = name, n
			return nil
		default:
			enter(n)
		}
	}
	// The root, or a path that ends in .. or . : a folder that is there.
	object, err := unix.Dup(f.folder)
	if err != nil {
		return err
	}
	f.object = object
	return unix.Fstat(object, &f.stat)
}

// link reads a link. A magic link of /proc has no meaningful text: through is then its
// target, and only links of the run's own processes are followed.
func (c *caller) link(folder, link int, name string) (to string, through int, err error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(link, &fs); err != nil {
		return "", -1, err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		group := statusOf(c.pid, "Tgid:")
		switch name {
		case "self":
			return strconv.Itoa(group), -1, nil
		case "thread-self":
			return strconv.Itoa(group) + "/task/" + strconv.Itoa(c.pid), -1, nil
		case "mounts", "net":
			return "", -1, unix.EACCES
		}
		process, _, _ := strings.Cut(strings.TrimPrefix(where(object{file: folder}), "/proc/"), "/")
		pid, err := strconv.Atoi(process)
		if err != nil || !c.s.ours(pid) || pid == os.Getpid() {
			return "", -1, unix.EACCES
		}
		through, err = unix.Openat(folder, name, unix.O_PATH|unix.O_CLOEXEC, 0)
		return "", through, err
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", text)
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	return string(text[:max(n, 0)]), -1, err
}
