package hand

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// FolderOptions adjusts Folders. Nil and zero fields mean the defaults.
type FolderOptions struct {
	// PerTenant gives each tenant the folder of its name below the root, made
	// when it is first asked for. Default: all agents share the root.
	PerTenant bool
	// Store is the directory of the server's own data. Opening fails when a
	// workspace would lie in it. Default: none.
	Store string
}

// Folders are workspaces on disk. All methods are safe for concurrent use.
type Folders struct {
	base      *os.Root
	perTenant bool

	mu      sync.Mutex
	closed  bool                // guarded by mu
	tenants map[string]*os.Root // guarded by mu
}

var _ Workspaces = (*Folders)(nil)

// OpenFolders opens the root folder, which must exist. Close the result.
func OpenFolders(root string, opts *FolderOptions) (*Folders, error) {
	o := FolderOptions{}
	if opts != nil {
		o = *opts
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoWorkspace, err)
	}
	if o.Store != "" && within(o.Store, dir) {
		return nil, fmt.Errorf("%w: %s lies in the store %s", ErrNoWorkspace, dir, o.Store)
	}
	base, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoWorkspace, err)
	}
	return &Folders{base: base, perTenant: o.PerTenant, tenants: map[string]*os.Root{}}, nil
}

// within reports whether path is dir or lies in it, links resolved.
func within(dir, path string) bool {
	dir, path = resolved(dir), resolved(path)
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// Root returns the workspace of the scope's agent. A tenant whose name can't be
// a folder's is ErrNoWorkspace.
func (f *Folders) Root(scope kv.Scope) (*os.Root, error) {
	if !f.perTenant {
		return f.base, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if root, ok := f.tenants[scope.Tenant]; ok {
		return root, nil
	}
	root, err := f.open(scope.Tenant)
	if err != nil {
		return nil, fmt.Errorf("%w: tenant %q: %w", ErrNoWorkspace, scope.Tenant, err)
	}
	f.tenants[scope.Tenant] = root
	return root, nil
}

// errTenantName: the tenant's name means something else to a file system.
var errTenantName = errors.New("its name can't be a folder's")

func (f *Folders) open(tenant string) (*os.Root, error) {
	if tenant == "" || strings.HasPrefix(tenant, ".") || strings.ContainsAny(tenant, "/\\\x00") {
		return nil, errTenantName
	}
	if err := f.base.Mkdir(tenant, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := f.base.Lstat(tenant)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errTenantName
	}
	return f.base.OpenRoot(tenant)
}

// Close closes all workspaces. Calls that still use one fail.
func (f *Folders) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	err := f.base.Close()
	for _, root := range f.tenants {
		err = errors.Join(err, root.Close())
	}
	return err
}
