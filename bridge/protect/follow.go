package protect

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/stamp"
)

const (
	gitFolder = ".git"
	// lookEvery is how long the list of repositories found below a workspace is reused.
	// Known repositories stay protected in any case.
	lookEvery = 30 * time.Second
	// maxFolders and maxDepth bound the look for them, folders near the top first.
	maxFolders = 1500
	maxDepth   = 8
	// maxRepositories bounds those whose settings are followed.
	maxRepositories = 64
	// maxWorkspaces bounds those whose repositories are remembered.
	maxWorkspaces = 1024
)

// Follower says what the settings of a workspace name. It is safe for concurrent use.
type Follower struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*knownWorkspace // by the name of the workspace; guarded by mu
}

// knownWorkspace is what was found of one workspace. The follower's lock guards it.
type knownWorkspace struct {
	repositories []string // the folders below it that repositories lie in
	looked       time.Time
	looking      bool

	named []string // what settings name
	of    settingsState
	read  time.Time

	set       *commands.Set // of protected and paths
	protected []string
	paths     []string
}

// settingsState distinguishes states of a workspace's own settings.
type settingsState struct {
	folder, config stamp.Stamp
	own            int
}

func stampOf(root *os.Root, name string) stamp.Stamp {
	info, err := root.Lstat(name)
	if err != nil {
		return stamp.Stamp{}
	}
	return stamp.Of(info)
}

// NewFollower returns one. now is nil for time.Now.
func NewFollower(now func() time.Time) *Follower {
	if now == nil {
		now = time.Now
	}
	return &Follower{now: now, known: map[string]*knownWorkspace{}}
}

// of returns the state of a workspace. The caller holds mu.
func (f *Follower) of(root *os.Root) *knownWorkspace {
	k, ok := f.known[root.Name()]
	if !ok {
		if len(f.known) >= maxWorkspaces {
			clear(f.known)
		}
		k = &knownWorkspace{}
		f.known[root.Name()] = k
	}
	return k
}

// Set is of protected paths, and of what Paths adds to them.
func (f *Follower) Set(root *os.Root, protected []string) *commands.Set {
	paths := f.Paths(root, protected, nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.of(root)
	if k.set == nil || !slices.Equal(k.protected, protected) || !slices.Equal(k.paths, paths) {
		k.set, k.protected, k.paths = commands.NewSet(slices.Concat(protected, paths)), protected, paths
	}
	return k.set
}

// Paths are what a workspace's settings and links add to protected paths, in the form of
// commands.Set. What is in own is of repositories that programs have made themselves: these
// are not followed.
func (f *Follower) Paths(root *os.Root, protected []string, own []sandbox.Folder) []string {
	w := &workspace{root: root}
	w.links(protected)
	for _, path := range f.named(root, own) {
		w.add(path)
	}
	return w.paths
}

// named is what the settings of a workspace name.
func (f *Follower) named(root *os.Root, own []sandbox.Folder) []string {
	now := settingsState{stampOf(root, gitFolder), stampOf(root, path.Join(gitFolder, "config")), len(own)}
	f.mu.Lock()
	k := f.of(root)
	if !k.read.IsZero() && k.of == now && f.now().Sub(k.read) < lookEvery {
		defer f.mu.Unlock()
		return k.named
	}
	f.mu.Unlock()
	w := &workspace{root: root}
	w.global()
	for _, folder := range append([]string{"."}, f.nested(root)...) {
		w.repository(folder, own)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k = f.of(root)
	k.named, k.of, k.read = w.paths, now, f.now()
	return w.paths
}

// repository follows one that lies in a folder.
func (w *workspace) repository(folder string, own []sandbox.Folder) {
	git := path.Join(folder, gitFolder)
	info, err := w.root.Lstat(git)
	if err != nil || slices.Contains(own, sandbox.FolderAt(filepath.Join(w.root.Name(), git))) {
		return
	}
	switch {
	case !info.IsDir():
		w.add(git) // in worktrees and submodules it is a file that says where the repository is
	case folder != ".":
		w.add(path.Join(git, "config"))
		w.add(path.Join(git, "hooks"))
	}
	for _, config := range []string{"config", "config.worktree"} {
		w.settings(path.Join(git, config), folder, 0)
	}
	w.modules(path.Join(git, "modules"), 0)
}

// nested are the folders below a workspace in which repositories lie.
func (f *Follower) nested(root *os.Root) []string {
	f.mu.Lock()
	k := f.of(root)
	if k.looking && !k.looked.IsZero() || !k.looked.IsZero() && f.now().Sub(k.looked) < lookEvery {
		defer f.mu.Unlock()
		return k.repositories
	}
	k.looking = true // while one looks again, the others use the last state
	f.mu.Unlock()
	found := search(root)
	f.mu.Lock()
	defer f.mu.Unlock()
	k = f.of(root)
	k.repositories, k.looked, k.looking = found, f.now(), false
	return found
}

// search looks for repositories, folder by folder from the top down.
func search(root *os.Root) []string {
	var found []string
	level := []string{"."}
	seen := 0
	for depth := 0; depth < maxDepth && len(level) > 0; depth++ {
		var next []string
		for _, folder := range level {
			if seen++; seen > maxFolders || len(found) >= maxRepositories {
				return found
			}
			for _, e := range entries(root, folder) {
				switch name := path.Join(folder, e.Name()); {
				case e.Name() == gitFolder && folder != ".":
					found = append(found, folder)
				case e.IsDir() && !strings.HasSuffix(e.Name(), gitFolder):
					next = append(next, name)
				}
			}
		}
		level = next
	}
	return found
}

func entries(root *os.Root, folder string) []fs.DirEntry {
	file, err := root.Open(folder)
	if err != nil {
		return nil // an unreadable file protects nothing
	}
	defer file.Close()
	list, _ := file.ReadDir(4 * maxFolders) // what was read until then
	return list
}

// workspace collects paths of one.
type workspace struct {
	root  *os.Root
	paths []string
}

func (w *workspace) add(name string) {
	if name = path.Clean(name); name != "." && filepath.IsLocal(name) && !strings.Contains(name, "*") && !slices.Contains(w.paths, name) {
		w.paths = append(w.paths, name)
	}
}

// maxTop bounds the names at the top of a workspace that are listed, rather than each
// protected one looked up.
const maxTop = 1000

// links adds where links in the place of protected paths lead.
func (w *workspace) links(protected []string) {
	top := map[string]fs.FileMode{}
	all := true
	if file, err := w.root.Open("."); err == nil {
		list, err := file.ReadDir(maxTop)
		all = err == nil && len(list) == maxTop
		_ = file.Close() // it was read
		for _, e := range list {
			top[e.Name()] = e.Type()
		}
	}
	for _, p := range commands.AtTop(protected) {
		first, _, deep := strings.Cut(p, "/")
		if kind, ok := top[first]; all || ok && (kind&fs.ModeSymlink != 0 || deep && kind.IsDir()) {
			w.behind(p)
		}
	}
}

// behind adds where links on the way of a path lead, and the links themselves.
func (w *workspace) behind(name string) {
	parts := strings.Split(name, "/")
	for i := range parts {
		prefix := path.Join(parts[:i+1]...)
		info, err := w.root.Lstat(prefix)
		if err != nil {
			return
		}
		if info.Mode().Type() != fs.ModeSymlink {
			continue
		}
		w.add(prefix)
		real, err := filepath.EvalSymlinks(filepath.Join(w.root.Name(), prefix))
		if err != nil {
			return
		}
		if rel := w.relative(real); rel != "" {
			w.add(path.Join(append([]string{rel}, parts[i+1:]...)...))
		}
		return
	}
}

// relative returns a place as a name in the workspace; empty if it is outside.
func (w *workspace) relative(place string) string {
	top, err := filepath.Abs(w.root.Name())
	if err != nil {
		return ""
	}
	tops := []string{top}
	if real, err := filepath.EvalSymlinks(top); err == nil && real != top {
		tops = append(tops, real)
	}
	for _, top := range tops {
		if rel, err := filepath.Rel(top, place); err == nil && filepath.IsLocal(rel) && rel != "." {
			return rel
		}
	}
	return ""
}

// global follows the settings of the server's user: a relative core.hooksPath there is one in
// each repository.
func (w *workspace) global() {
	home, err := os.UserHomeDir()
	if err != nil {
		return
	}
	for _, file := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config/git/config"), "/etc/gitconfig"} {
		if text, err := readSettings(os.Open(file)); err == nil {
			w.follow(text, filepath.Dir(file), ".", 0)
		}
	}
}

// modules follows the settings of submodules, whose names may have slashes.
func (w *workspace) modules(folder string, depth int) {
	if depth > maxIncludes {
		return
	}
	for _, e := range entries(w.root, folder) {
		if !e.IsDir() {
			continue
		}
		name := path.Join(folder, e.Name())
		if _, err := w.root.Lstat(path.Join(name, "config")); err == nil {
			w.settings(path.Join(name, "config"), ".", 0)
			w.modules(path.Join(name, "modules"), depth+1)
		} else {
			w.modules(name, depth+1)
		}
	}
}
