package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddrFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "address")
	p := MustRun(t, dir, "--addr-file", path)
	// The file is there before the line is.
	got, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(got)) != p.Address {
		t.Errorf("file = %q, %v; address %q", got, err, p.Address)
	}
	must(t, p.Stop())
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left behind: %v", err)
	}
}

func TestAddrFileReplacesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	must(t, os.WriteFile(target, []byte("mine"), 0o600))
	must(t, os.Symlink(target, link))
	for _, path := range []string{link, dir} {
		err := runBriefly(t, "--addr=127.0.0.1:0", "--data-dir="+filepath.Join(dir, "store"), "--workspace="+dir, "--addr-file="+path)
		if err == nil || !strings.Contains(err.Error(), "--addr-file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "mine" {
		t.Errorf("the target of the link holds %q, %v", got, err)
	}
}

// Somebody who takes the address file away does not make a good end a bad one.
func TestAddrFileMayBeGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "address")
	p := MustRun(t, dir, "--addr-file", path)
	save(t, p, "served")
	must(t, os.Remove(path))
	must(t, p.Stop())
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "loom.sock")
	// What a killed server left behind is in nobody's way.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	must(t, err)
	stale.SetUnlinkOnClose(false)
	must(t, stale.Close())
	p := MustRun(t, dir, "--addr", "unix:"+socket)
	save(t, p, "through a socket")
	info, err := os.Stat(socket)
	must(t, err)
	if p.Address != "unix:"+socket || info.Mode().Perm() != 0o600 {
		t.Errorf("address %q, mode %v", p.Address, info.Mode())
	}
	if err := runBriefly(t, "--addr=unix:"+socket, "--data-dir="+filepath.Join(dir, "other")); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second server on the socket: %v", err)
	}
}
