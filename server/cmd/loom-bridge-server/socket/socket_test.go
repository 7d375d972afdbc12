package socket_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/socket"
)

// abandon leaves a socket behind as a killed server does.
func abandon(t *testing.T, path string) {
	t.Helper()
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
}

// Of many servers that find the socket of a killed one, one gets it, and it answers.
func TestStaleSocketGoesToOne(t *testing.T) {
	t.Parallel()
	for range 20 {
		path := filepath.Join(t.TempDir(), "s")
		abandon(t, path)
		var mu sync.Mutex
		var got []net.Listener
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				l, err := socket.Listen(path)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					got = append(got, l)
				case !errors.Is(err, syscall.EADDRINUSE):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(got) != 1 || !socket.Answers(path) {
			t.Fatalf("%d servers have the socket; it answers: %v", len(got), socket.Answers(path))
		}
		if got[0].Addr().String() != path {
			t.Errorf("the address is %s", got[0].Addr())
		}
		if err := got[0].Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
			t.Errorf("%v, %v are left", left, err)
		}
	}
}

// A server that ends removes its own socket alone.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	first, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if !socket.Answers(path) {
		t.Error("the second server's socket is gone")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	_, _ = second.Close(), first.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// What is no socket is not removed.
func TestListenOverAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := socket.Listen(path); err == nil {
		t.Errorf("%v listens", l.Close())
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := socket.Listen(filepath.Join(t.TempDir(), "none", "s")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
}

// A path that no client could connect to is refused.
func TestLongPath(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if l, err := socket.Listen(filepath.Join(folder, strings.Repeat("s", 107-len(folder)))); err == nil || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("%v, %v", l, err)
	}
	l, err := socket.Listen(filepath.Join(folder, strings.Repeat("s", 106-len(folder))))
	if err != nil || !socket.Answers(l.Addr().String()) {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A data directory has one socket, whichever way leads there, and others have others.
func TestPath(t *testing.T) {
	runtime, store, link := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "link")
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	if err := os.Symlink(store, link); err != nil {
		t.Fatal(err)
	}
	path := func(dir string) string {
		t.Helper()
		p, err := socket.Path(dir)
		if err != nil || !strings.HasPrefix(p, runtime) {
			t.Fatalf("%s, %v", p, err)
		}
		return p
	}
	if path(store) != path(link) || path(store) == path(runtime) || path(store) != path(store+"/.") {
		t.Errorf("%s %s %s", path(store), path(link), path(runtime))
	}
	if path(filepath.Join(store, "to", "be")) != path(filepath.Join(link, "to", "be")) {
		t.Error("a directory that is not there yet has two sockets")
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(runtime, strings.Repeat("long", 30)))
	if p, err := socket.Path(store); err != nil || !strings.HasPrefix(p, "/tmp/loom-bridge-") {
		t.Errorf("beside a long path: %s, %v", p, err)
	}
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	folder := filepath.Dir(path(store))
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // that is what is refused
		t.Fatal(err)
	}
	if _, err := socket.Path(store); err == nil || !strings.Contains(err.Error(), "--addr") {
		t.Errorf("in a folder that others may enter: %v", err)
	}
}
