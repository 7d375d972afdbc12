package children

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// WorkspaceOptions adjusts Workspaces. Nil and zero fields mean the defaults.
type WorkspaceOptions struct {
	// Own gives every agent its own folder, as a child has. Default: agents without a
	// parent share the folder above.
	Own bool
}

// Workspaces gives each child its own folder below the workspace that its tenant has,
// which is closed to everybody else. All methods are safe for concurrent use.
type Workspaces struct {
	base     hand.Workspaces
	children *Store
	own      bool

	mu     sync.Mutex // guards the fields below
	closed bool
	roots  map[kv.Scope]*list.Element // in recent
	recent *list.List                 // of openRoot; that which was used last is first
	left   int                        // folders that were left since the runtime was asked to close them
}

// openRoot is the folder of an agent.
type openRoot struct {
	scope kv.Scope
	root  *os.Root
}

var (
	_ hand.Workspaces = (*Workspaces)(nil)
	_ hand.Divided    = (*Workspaces)(nil)
)

// NewWorkspaces returns the workspaces below base's; the caller keeps ownership of base.
// Close the result.
func NewWorkspaces(base hand.Workspaces, children *Store, opts *WorkspaceOptions) *Workspaces {
	w := &Workspaces{base: base, children: children, roots: map[kv.Scope]*list.Element{}, recent: list.New()}
	if opts != nil {
		w.own = opts.Own
	}
	return w
}

// Root returns the workspace of the scope's agent.
func (w *Workspaces) Root(scope kv.Scope) (*os.Root, error) {
	return w.RootIn(context.Background(), scope)
}

// RootIn is Root for a call that reads within a view, such as that of a prompt.
func (w *Workspaces) RootIn(ctx context.Context, scope kv.Scope) (*os.Root, error) {
	base, err := w.base.Root(scope)
	if err != nil || !w.own && !w.children.is(ctx, scope) {
		return base, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, hand.ErrClosed
	}
	if e, ok := w.roots[scope]; ok {
		w.recent.MoveToFront(e)
		return e.Value.(openRoot).root, nil
	}
	if err := CheckID(scope.Owner); err != nil {
		return nil, fmt.Errorf("%w: the agent's id can't be the name of a folder: %w", hand.ErrNoWorkspace, err)
	}
	if err := makeFolder(base, scope.Owner); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: agent %q: %w", hand.ErrNoWorkspace, scope.Owner, err)
	}
	info, err := base.Lstat(scope.Owner)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	var root *os.Root
	if err == nil {
		root, err = base.OpenRoot(scope.Owner)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: agent %q: %w", hand.ErrNoWorkspace, scope.Owner, err)
	}
	w.keep(scope, root)
	return root, nil
}

// keptRoots is how many folders stay open for the calls to come.
const keptRoots = 512

// keep keeps a folder open in the place of the least recently used one. A call may still
// work in the latter, so it is not closed but dropped: the runtime closes a folder without
// references. The caller holds mu.
func (w *Workspaces) keep(scope kv.Scope, root *os.Root) {
	for len(w.roots) >= keptRoots {
		last := w.recent.Back()
		w.recent.Remove(last)
		delete(w.roots, last.Value.(openRoot).scope)
		if w.left++; w.left == maxLeft {
			w.left = 0
			go runtime.GC() // which closes the folders without references
		}
	}
	w.roots[scope] = w.recent.PushFront(openRoot{scope, root})
}

// maxLeft is how many folders are left before the runtime is asked to close them.
const maxLeft = 256

// Closed reports whether an entry of an agent's workspace is that of a child.
func (w *Workspaces) Closed(scope kv.Scope, name string) bool {
	return !w.own && CheckID(name) == nil && w.children.Is(kv.AgentScope(scope.Tenant, name)) && !w.children.Is(scope)
}

// Make makes the folder of a child, which must not be there: fs.ErrExist. An empty folder
// without permissions was left by a killed spawn, and is reused.
func (w *Workspaces) Make(scope kv.Scope) error {
	base, err := w.base.Root(scope)
	if err != nil {
		return err
	}
	err = makeFolder(base, scope.Owner)
	if errors.Is(err, fs.ErrExist) && left(base, scope.Owner) {
		return nil
	}
	return err
}

// left reports whether an entry is a folder that a killed spawn left.
func left(base *os.Root, name string) bool {
	info, err := base.Lstat(name)
	if err != nil || info.Mode() != fs.ModeDir|childMode {
		return false
	}
	entries, err := fs.ReadDir(base.FS(), name)
	return err == nil && len(entries) == 0
}

// Remove removes the folder of a child that came to nothing, if it is empty.
func (w *Workspaces) Remove(scope kv.Scope) {
	if base, err := w.base.Root(scope); err == nil {
		_ = base.Remove(scope.Owner) // what is not empty is not ours
	}
}

// childMode gives access only to the owner.
const childMode = 0o700

// makeFolder makes a folder that belongs to the owner of the one above: a server that runs
// as root runs the programs of tools as the owner of the workspace.
func makeFolder(base *os.Root, name string) error {
	if err := base.Mkdir(name, childMode); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	above, err := base.Stat(".")
	if err != nil {
		return err
	}
	if stat, ok := above.Sys().(*syscall.Stat_t); ok && (stat.Uid != 0 || stat.Gid != 0) {
		return base.Chown(name, int(stat.Uid), int(stat.Gid))
	}
	return nil
}

// Close closes the folders that were opened.
func (w *Workspaces) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	var errs []error
	for _, e := range w.roots {
		errs = append(errs, e.Value.(openRoot).root.Close())
	}
	clear(w.roots)
	w.recent.Init()
	return errors.Join(errs...)
}
