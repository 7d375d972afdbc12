package hand_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MustFolders opens workspaces and closes them at the end.
func MustFolders(tb testing.TB, dir string, opts *hand.FolderOptions) *hand.Folders {
	tb.Helper()
	f, err := hand.OpenFolders(dir, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

func TestFoldersShared(t *testing.T) {
	dir := t.TempDir()
	f := MustFolders(t, dir, nil)
	a, err := f.Root(kv.AgentScope("x", "1"))
	if err != nil || a.Name() != dir {
		t.Errorf("got %v, %v", a, err)
	}
}

func TestFoldersPerTenant(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f := MustFolders(t, dir, &hand.FolderOptions{PerTenant: true})
	a, err := f.Root(kv.AgentScope("acme", "1"))
	if err != nil || a.Name() != filepath.Join(dir, "acme") {
		t.Fatalf("got %v, %v", a, err)
	}
	if b, err := f.Root(kv.AgentScope("acme", "2")); err != nil || a != b {
		t.Errorf("another agent of the tenant: got %v, %v", b, err)
	}
	for _, tenant := range []string{"", ".", "..", "../x", "a/b", `a\b`, ".loom", "linked", "file", strings.Repeat("x", 300)} {
		if _, err := f.Root(kv.AgentScope(tenant, "1")); !errors.Is(err, hand.ErrNoWorkspace) {
			t.Errorf("tenant %.20q: got %v, want ErrNoWorkspace", tenant, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Root(kv.AgentScope("acme", "1")); !errors.Is(err, hand.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

func TestFoldersRefuse(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "store", "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "store", "below"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	opts := &hand.FolderOptions{Store: filepath.Join(dir, "store")}
	for _, root := range []string{"store", "store/below", "link", "none"} {
		if f, err := hand.OpenFolders(filepath.Join(dir, root), opts); !errors.Is(err, hand.ErrNoWorkspace) {
			t.Errorf("%s: got %v, %v; want ErrNoWorkspace", root, f, err)
		}
	}
	MustFolders(t, dir, opts)
}
