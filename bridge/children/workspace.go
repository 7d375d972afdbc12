package children

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// WorkspaceOptions adjusts Workspaces. Nil and zero fields mean the defaults.
type WorkspaceOptions struct {
	// Own gives every agent a folder of its own, as a child has. Default: agents that
	// nobody spawned share the folder above.
	Own bool
}

// Workspaces gives each child a folder of its own below the workspace that its tenant has,
// which is closed to everybody else. All methods are safe for concurrent use.
type Workspaces struct {
	base     hand.Workspaces
	children *Store
	own      bool

	mu     sync.Mutex
	closed bool                  // guarded by mu
	roots  map[kv.Scope]*os.Root // guarded by mu
}

var (
	_ hand.Workspaces = (*Workspaces)(nil)
	_ hand.Divided    = (*Workspaces)(nil)
)

// NewWorkspaces returns the workspaces below those of base, which stays the caller's.
// Close the result.
func NewWorkspaces(base hand.Workspaces, children *Store, opts *WorkspaceOptions) *Workspaces {
	w := &Workspaces{base: base, children: children, roots: map[kv.Scope]*os.Root{}}
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
	if root, ok := w.roots[scope]; ok {
		return root, nil
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
	if len(w.roots) >= keptRoots {
		w.trim()
	}
	w.roots[scope] = root
	return root, nil
}

// keptRoots is how many folders are open before those of ended children are closed.
const keptRoots = 512

// trim closes the folders of children that ended long ago: no call of theirs runs any more.
// The caller holds mu.
func (w *Workspaces) trim() {
	for scope, root := range w.roots {
		c, err := w.children.Get(context.Background(), scope)
		if err == nil && c.Result != nil && w.children.now().Sub(c.Result.Time) > 2*hand.MaxTimeout {
			_ = root.Close() // nothing is written through it
			delete(w.roots, scope)
		}
	}
}

// Closed tells whether an entry of an agent's workspace is that of a child.
func (w *Workspaces) Closed(scope kv.Scope, name string) bool {
	return !w.own && CheckID(name) == nil && w.children.Is(kv.AgentScope(scope.Tenant, name)) && !w.children.Is(scope)
}

// Make makes the folder of a child, which must not be there: fs.ErrExist. An empty one that
// lets nobody in is what a spawn left that was killed, and is taken.
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

// left tells whether an entry is a folder that a killed spawn left.
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

// childMode lets nobody else in.
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
	for _, root := range w.roots {
		errs = append(errs, root.Close())
	}
	clear(w.roots)
	return errors.Join(errs...)
}
