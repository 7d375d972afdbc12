package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

var _ hand.Workspaces = (*workspaces)(nil)

// workspaces gives all agents of a tenant one directory: the root itself while
// there is only one tenant, else a folder of the tenant's name in it. All
// methods are safe for concurrent use.
type workspaces struct {
	root      *os.Root
	perTenant bool

	mu      sync.Mutex // guards what follows
	tenants map[string]*os.Root
}

func openWorkspaces(dir string, perTenant bool) (*workspaces, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &ConfigError{"workspace", dir, err.Error()}
	}
	return &workspaces{root: root, perTenant: perTenant, tenants: map[string]*os.Root{}}, nil
}

// Root returns the workspace of the scope's tenant and makes it if it is not
// there. Tenants come from the credentials, whose names are plain file names.
func (w *workspaces) Root(scope kv.Scope) (*os.Root, error) {
	if !w.perTenant {
		return w.root, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if root := w.tenants[scope.Tenant]; root != nil {
		return root, nil
	}
	if err := w.root.Mkdir(scope.Tenant, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %w", hand.ErrNoWorkspace, err)
	}
	root, err := w.root.OpenRoot(scope.Tenant)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hand.ErrNoWorkspace, err)
	}
	w.tenants[scope.Tenant] = root
	return root, nil
}

// Close releases all directories.
func (w *workspaces) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.root.Close()
	for _, root := range w.tenants {
		err = errors.Join(err, root.Close())
	}
	return err
}
