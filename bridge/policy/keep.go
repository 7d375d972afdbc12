package policy

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Keeper puts the file of a workspace back that a program has changed: where namespaces
// confine it, it can't, but for a file that was not there; Landlock alone can't keep one file
// of a folder. The zero Keeper is ready. It is safe for concurrent use.
type Keeper struct {
	mu   sync.Mutex
	held map[string]*kept // by the name of the workspace; guarded by mu
}

// kept is a file as it was before the first of some programs began.
type kept struct {
	programs int
	stamp    stamp
	content  []byte
	mode     fs.FileMode
	uid, gid int
}

// Hold remembers the file of a workspace while a program runs, and returns what to call when
// it has ended: that puts back what was changed, and tells whether it had to. Nobody can
// change the file meanwhile, people included. A file that can't be used already is left as it
// is.
func (k *Keeper) Hold(root *os.Root) (release func() (restored bool, err error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = map[string]*kept{}
	}
	file, ok := k.held[root.Name()]
	if !ok {
		var err error
		if file, err = remember(root); err != nil {
			return func() (bool, error) { return false, nil }
		}
		k.held[root.Name()] = file
	}
	file.programs++
	return func() (bool, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if file.programs--; file.programs == 0 {
			delete(k.held, root.Name())
		}
		return file.restore(root)
	}
}

func remember(root *os.Root) (*kept, error) {
	seen, err := look(root)
	if err != nil || seen == (stamp{}) {
		return &kept{}, err
	}
	content, err := read(root, seen)
	if err != nil {
		return nil, err
	}
	info, err := root.Lstat(File)
	if err != nil {
		return nil, err
	}
	s := info.Sys().(*syscall.Stat_t)
	return &kept{stamp: seen, content: content, mode: info.Mode().Perm(), uid: int(s.Uid), gid: int(s.Gid)}, nil
}

// restore puts the file back unless it is still as it was.
func (f *kept) restore(root *os.Root) (bool, error) {
	seen, err := look(root)
	if err == nil && seen == f.stamp {
		return false, nil
	}
	if f.stamp == (stamp{}) {
		if err := root.RemoveAll(File); err != nil {
			return true, fmt.Errorf("policy: take away %s: %w", File, err)
		}
		return true, nil
	}
	if info, err := root.Lstat(fileFolder); err == nil && !info.IsDir() {
		if err := root.Remove(fileFolder); err != nil {
			return true, fmt.Errorf("policy: put back %s: %w", File, err)
		}
	}
	temp := fileFolder + "/.loom-tmp-" + rand.Text()
	err = errors.Join(root.MkdirAll(fileFolder, 0o755), root.WriteFile(temp, f.content, f.mode))
	if err == nil && os.Geteuid() == 0 {
		err = root.Chown(temp, f.uid, f.gid)
	}
	if err == nil {
		if info, look := root.Lstat(File); look == nil && info.IsDir() {
			err = root.RemoveAll(File)
		}
	}
	if err == nil {
		err = root.Rename(temp, File)
	}
	if err != nil {
		return true, fmt.Errorf("policy: put back %s: %w", File, err)
	}
	f.stamp, err = look(root)
	return true, err
}
