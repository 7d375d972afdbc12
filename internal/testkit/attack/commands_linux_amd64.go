package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
)

// commandAttacks put something at each name of the table of what gives commands to others, one
// way for all names.
var commandAttacks = map[string]attempt{
	"commands-create": each(func(_ World, p string) { _ = os.WriteFile(p, []byte("x"), 0o644) }),
	"commands-overwrite": each(func(_ World, p string) {
		for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR | unix.O_APPEND, unix.O_RDONLY | unix.O_TRUNC} {
			if n, err := unix.Open(p, flags|unix.O_CLOEXEC, 0); err == nil {
				_, _ = unix.Write(n, []byte("x")) // what comes of it is seen
				_ = unix.Close(n)
			}
		}
		_ = os.Truncate(p, 1)
	}),
	"commands-folder": each(func(_ World, p string) { _ = os.MkdirAll(filepath.Join(p, "deep"), 0o755) }),
	"commands-rename": each(func(w World, p string) { _ = os.Rename(w.fresh(), p) }),
	"commands-move-folder": each(func(w World, p string) {
		from := w.work("folder" + strconv.Itoa(os.Getpid()))
		_ = os.MkdirAll(filepath.Join(from, "deep"), 0o755)
		_ = os.Rename(from, p)
	}),
	"commands-exchange": each(func(w World, p string) {
		_ = unix.Renameat2(unix.AT_FDCWD, w.fresh(), unix.AT_FDCWD, p, unix.RENAME_EXCHANGE)
	}),
	"commands-symlink": each(func(w World, p string) { _ = os.Symlink(w.fresh(), p) }),
	"commands-hardlink": each(func(w World, p string) {
		_ = os.Link(w.fresh(), p)
		other := w.work("name" + strconv.Itoa(os.Getpid()))
		if os.Link(p, other) == nil {
			_ = os.WriteFile(other, []byte("x"), 0o644)
			_ = os.Remove(other)
		}
	}),
	"commands-node": each(func(_ World, p string) { _ = unix.Mkfifo(p, 0o644) }),
	"commands-tmpfile": each(func(w World, p string) {
		n, err := unix.Open(w.Work, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return
		}
		_ = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(n), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
		_ = unix.Linkat(n, "", unix.AT_FDCWD, p, unix.AT_EMPTY_PATH)
		_ = unix.Close(n)
	}),
	"commands-remove": each(func(_ World, p string) { _ = os.RemoveAll(p) }),
	"commands-folders-above": each(func(w World, p string) {
		rel, _ := filepath.Rel(w.Work, p)
		first, rest, deep := strings.Cut(rel, "/")
		if !deep {
			return
		}
		from := w.work("above" + strconv.Itoa(os.Getpid()))
		_ = os.RemoveAll(from)
		_ = os.MkdirAll(filepath.Dir(filepath.Join(from, rest)), 0o755)
		_ = os.WriteFile(filepath.Join(from, rest), []byte("x"), 0o644)
		away := w.work("away" + strconv.Itoa(os.Getpid()))
		_ = os.Rename(w.work(first), away)
		_ = os.Rename(from, w.work(first))
		_ = os.Symlink(from, w.work(first))
		if _, err := os.Lstat(w.work(first)); err != nil {
			_ = os.Rename(away, w.work(first))
		}
	}),
	"commands-by-descriptor": each(func(_ World, p string) {
		folder, err := unix.Open(filepath.Dir(p), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		defer unix.Close(folder)
		if n, err := unix.Openat(folder, "./"+filepath.Base(p), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644); err == nil {
			_, _ = unix.Write(n, []byte("x")) // what comes of it is seen
			_ = unix.Close(n)
		}
	}),
	"commands-by-link": each(func(w World, p string) {
		link := w.work("link" + strconv.Itoa(os.Getpid()))
		_ = os.Remove(link)
		if os.Symlink(p, link) == nil {
			_ = os.WriteFile(link, []byte("x"), 0o644)
		}
		_ = os.WriteFile("/proc/self/cwd/"+strings.TrimPrefix(p, w.Work+"/"), []byte("x"), 0o644)
	}),
	"commands-other-case": func(w World) error {
		return walkNames(w, func(p string) string {
			rel, _ := filepath.Rel(w.Work, p)
			return filepath.Join(w.Work, strings.ToUpper(rel))
		}, func(_ World, p string) {
			_ = os.MkdirAll(filepath.Dir(p), 0o755)
			_ = os.WriteFile(p, []byte("x"), 0o644)
		})
	},
	"race-name":      raceName,
	"race-link-name": raceLinkName,
}

// fresh is a file of the attacker's.
func (w World) fresh() string {
	name := w.work("fresh" + strconv.Itoa(os.Getpid()))
	_ = os.WriteFile(name, []byte("x"), 0o755) // what comes of it is seen
	return name
}

// each makes one attempt on every name of the table.
func each(do func(w World, path string)) attempt {
	return func(w World) error { return walkNames(w, func(p string) string { return p }, do) }
}

// walkNames makes attempts, and reports whether something is at one of the names that was not
// there before, or is another.
func walkNames(w World, spelt func(string) string, do func(w World, path string)) error {
	if err := os.Chdir(w.Work); err != nil {
		return err
	}
	tried := 0
	for _, row := range commands.Table() {
		for _, p := range Spelt(row.Path) {
			p = spelt(w.work(p))
			_ = os.MkdirAll(filepath.Dir(p), 0o755) // a folder above may be a protected one
			before := stateAt(p)
			do(w, p)
			tried++
			if now := stateAt(p); now != before {
				fmt.Print(p)
				return nil
			}
		}
	}
	return fmt.Errorf("stopped at all of %d names", tried)
}

// Spelt are names that a path of the table stands for.
func Spelt(path string) []string {
	rest, deep := strings.CutPrefix(path, "**/")
	if rest = strings.ReplaceAll(strings.Replace(rest, "*.git", ".git", 1), "*", "m"); deep {
		return []string{rest, "nested/" + rest}
	}
	return []string{rest}
}

// stateAt is the observable state of a name.
func stateAt(p string) string {
	var stat unix.Stat_t
	if err := unix.Lstat(p, &stat); err != nil {
		return ""
	}
	return fmt.Sprint(stat.Ino, stat.Mode, stat.Size, stat.Mtim)
}

// raceName changes the name in memory while calls read it.
func raceName(w World) error {
	name := []byte(w.work("xenvrc") + "\x00")
	at := len(w.work(""))
	if at == len(w.Work) {
		at++
	}
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			name[at] ^= '.' ^ 'x'
		}
	}()
	flags := uintptr(unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC)
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
		n, _, e := unix.Syscall(unix.SYS_OPEN, addressOf(name), flags, 0o644)
		if e == 0 {
			_ = unix.Close(int(n))
		}
	}
	over.Store(true)
	<-done
	_ = os.Remove(w.work("xenvrc"))
	if _, err := os.Lstat(w.work(".envrc")); err != nil {
		return errStopped
	}
	return nil
}

// raceLinkName swaps a folder on the way for a link to the workspace while names are made.
func raceLinkName(w World) error {
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			_ = os.Mkdir(w.work("way"), 0o755)
			_ = os.RemoveAll(w.work("way"))
			_ = os.Symlink(".", w.work("way"))
			_ = os.Remove(w.work("way"))
		}
	}()
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
		_ = os.WriteFile(w.work("way/.envrc"), []byte("x"), 0o644)
	}
	over.Store(true)
	<-done
	if _, err := os.Lstat(w.work(".envrc")); err != nil {
		return errStopped
	}
	return nil
}
