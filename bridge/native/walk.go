package native

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// target is where a path leads: a name in an open folder. Close it.
type target struct {
	dir *os.Root
	// name is never a link to be followed; "." is the folder itself.
	name string
	// rel is the path from the workspace, links resolved.
	rel string
	// info says what is there, links not followed; nil when nothing is.
	info fs.FileInfo

	walk *walker // holds dir open
}

func (p *target) close() { p.walk.reset() }

// want says how a path is walked.
type want struct {
	// noFollow stops at a link at the end of the path.
	noFollow bool
	// parents makes the folders that are missing on the way.
	parents bool
	// guard is what the walk may not touch.
	guard guard
}

// errRaced says that the path changed under the walk.
var errRaced = errors.New("native: path changed while it was walked")

// find walks a path as the model wrote it. Its errors are made for the model.
func (f *files) find(ctx context.Context, root *os.Root, name string, w want) (*target, error) {
	rel, err := relative(root, name)
	if err != nil {
		return nil, err
	}
	w.guard = guardOf(ctx)
	for range maxRaces {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := f.walk(root, rel, w)
		if err == nil && p.info != nil && !p.info.IsDir() && strings.HasSuffix(name, "/") {
			p.close()
			err = syscall.ENOTDIR // only a folder's name may end so
		}
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errRaced) {
			return nil, failure(name, err)
		}
	}
	return nil, failure(name, errRaced)
}

// relative checks a path's form and returns it relative to the workspace.
func relative(root *os.Root, name string) (string, error) {
	switch {
	case strings.IndexByte(name, 0) >= 0:
		return "", tools.Errorf(tools.Failed, "path holds a NUL byte")
	case len(name) > MaxPathBytes:
		return "", tools.Errorf(tools.TooLarge, "path of %d bytes exceeds the limit of %d", len(name), MaxPathBytes)
	}
	rel, ok := inside(root, name)
	if !ok {
		return "", errTraversal()
	}
	for part := range strings.SplitSeq(rel, "/") {
		if len(part) > maxNameBytes {
			return "", tools.Errorf(tools.TooLarge, "a name of %d bytes in the path exceeds the limit of %d", len(part), maxNameBytes)
		}
	}
	return rel, nil
}

// inside returns the path relative to the workspace, and false when it leads
// out by its spelling alone.
func inside(root *os.Root, name string) (string, bool) {
	if !path.IsAbs(name) {
		rel := path.Clean(name)
		return rel, filepath.IsLocal(rel)
	}
	for base := range spellings(root) {
		if rel, err := filepath.Rel(base, path.Clean(name)); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// spellings yields the absolute names of the workspace: as it was opened, and
// with links resolved.
func spellings(root *os.Root) iter.Seq[string] {
	return func(yield func(string) bool) {
		name, err := filepath.Abs(root.Name())
		if err != nil || !yield(name) {
			return
		}
		if real, err := filepath.EvalSymlinks(name); err == nil && real != name {
			yield(real)
		}
	}
}

// walker is one walk from the workspace down. However deep it goes, it holds
// one folder open: the store needs file handles too.
type walker struct {
	files *files
	root  *os.Root
	want  want

	// dir is the folder that the walk is in, nil for the workspace itself; names
	// lead to it.
	dir     *os.Root
	names   []string
	pending []string
	links   int
	ups     int
}

func (f *files) walk(root *os.Root, rel string, w want) (*target, error) {
	if info, err := root.Stat("."); err != nil {
		return nil, err
	} else if f.isStore(info) {
		return nil, errStore()
	}
	walk := &walker{files: f, root: root, want: w, pending: strings.Split(rel, "/")}
	p, err := walk.run()
	if err != nil {
		walk.reset()
		return nil, err
	}
	p.walk = walk
	return p, nil
}

func (w *walker) top() *os.Root {
	if w.dir == nil {
		return w.root
	}
	return w.dir
}

// reset goes back to the workspace.
func (w *walker) reset() {
	if w.dir != nil {
		_ = w.dir.Close() // only read from
	}
	w.dir, w.names = nil, nil
}

// up goes to the folder above, by its path from the workspace on.
func (w *walker) up() error {
	if len(w.names) == 0 {
		return errTraversal()
	}
	if w.ups++; w.ups > maxUps {
		return syscall.ELOOP
	}
	w.pending = append(w.names[:len(w.names)-1], w.pending...)
	w.reset()
	return nil
}

func (w *walker) run() (*target, error) {
	for len(w.pending) > 0 {
		part := w.pending[0]
		w.pending = w.pending[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if err := w.up(); err != nil {
				return nil, err
			}
			continue
		}
		if p, err := w.step(part); p != nil || err != nil {
			return p, err
		}
	}
	info, err := w.top().Stat(".")
	if err != nil {
		return nil, err
	}
	return &target{dir: w.top(), name: ".", rel: path.Join(append([]string{"."}, w.names...)...), info: info}, nil
}

// step takes one part of the path: it ends the walk with a target, enters a
// folder, or puts a link's target in front of what is pending.
func (w *walker) step(part string) (*target, error) {
	last := len(w.pending) == 0
	info, err := w.top().Lstat(part)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info = nil
	case err != nil:
		return nil, err
	case info.Mode().Type() == fs.ModeSymlink && !(last && w.want.noFollow):
		return nil, w.follow(part)
	case info.IsDir() && w.files.isStore(info):
		return nil, errStore()
	}
	if err := w.want.guard.check(path.Join(append(w.names, part)...)); err != nil {
		return nil, err
	}
	if last {
		return &target{dir: w.top(), name: part, rel: path.Join(append(w.names, part)...), info: info}, nil
	}
	if info == nil {
		if info, err = w.create(part); err != nil {
			return nil, err
		}
	}
	return nil, w.enter(part, info)
}

// follow replaces a link by where it leads. One whose own name is hidden leads nowhere.
func (w *walker) follow(part string) error {
	if rel := path.Join(append(w.names, part)...); !w.want.guard.sees(rel) {
		return errHidden(rel)
	}
	if w.links++; w.links > maxLinks {
		return syscall.ELOOP
	}
	target, err := w.top().Readlink(part)
	if err != nil {
		return errRaced // it was a link a moment ago
	}
	if path.IsAbs(target) {
		rel, ok := inside(w.root, target)
		if !ok {
			return errTraversal()
		}
		w.reset()
		target = rel
	}
	w.pending = append(strings.Split(target, "/"), w.pending...)
	return nil
}

// create makes a missing folder, if the walk is to.
func (w *walker) create(part string) (fs.FileInfo, error) {
	if !w.want.parents {
		return nil, fs.ErrNotExist
	}
	switch err := w.top().Mkdir(part, 0o777); {
	case err == nil:
		if err := w.own(part); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	return w.top().Lstat(part)
}

// own gives a new folder the owner of the one that it is in; see target.own.
func (w *walker) own(part string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := w.top().Stat(".")
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && (stat.Uid != 0 || stat.Gid != 0) {
		return w.top().Lchown(part, int(stat.Uid), int(stat.Gid))
	}
	return nil
}

// enter opens a folder and makes sure that it is the one that was looked at,
// and not the store.
func (w *walker) enter(part string, seen fs.FileInfo) error {
	if !seen.IsDir() {
		return syscall.ENOTDIR
	}
	dir, err := w.files.openDir(w.top(), part, seen)
	if err != nil {
		return err
	}
	names := append(w.names, part)
	w.reset()
	w.dir, w.names = dir, names
	return nil
}

// openDir opens a folder that was seen before.
func (f *files) openDir(parent *os.Root, name string, seen fs.FileInfo) (*os.Root, error) {
	dir, err := parent.OpenRoot(name)
	if moved(err) {
		return nil, errRaced
	}
	if err != nil {
		return nil, err
	}
	now, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, now) {
		err = errRaced
	}
	if err == nil && f.isStore(now) {
		err = errStore()
	}
	if err != nil {
		_ = dir.Close() // nothing was done with it
		return nil, err
	}
	return dir, nil
}

// moved reports whether an error says that an entry seen a moment ago has gone or changed
// its type.
func moved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) ||
		err != nil && bare(err).Error() == escapes
}

// isStore reports whether info is a directory no tool may touch.
func (f *files) isStore(info fs.FileInfo) bool {
	return f.store != nil && os.SameFile(f.store, info)
}
