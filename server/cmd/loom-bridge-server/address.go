package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// listen opens a listening address. An address that somebody else has says so,
// and how to choose another.
func listen(field, addr string) (net.Listener, error) {
	network, address, err := splitAddr(addr)
	if err != nil {
		return nil, &ConfigError{field, addr, err.Error()}
	}
	if network == "unix" {
		removeStaleSocket(address)
	}
	listener, err := net.Listen(network, address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, takenError{&ConfigError{field, addr, "the address is in use; stop the other server or give another address"}}
	case err != nil:
		return nil, &ConfigError{field, addr, err.Error()}
	}
	if network == "unix" {
		if err := os.Chmod(address, 0o600); err != nil {
			return nil, errors.Join(&ConfigError{field, addr, err.Error()}, listener.Close())
		}
	}
	return listener, nil
}

// local reports whether only this machine reaches an address.
func local(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

const (
	// staleTime is how long a socket has no answer before it is removed: a socket that is
	// just being created does not answer for a moment, either.
	staleTime = 300 * time.Millisecond
	stalePoll = staleTime / 10
)

// removeStaleSocket takes away what a killed server left behind: a socket that
// without an answer.
func removeStaleSocket(path string) {
	first, err := os.Lstat(path)
	if err != nil || first.Mode().Type() != os.ModeSocket {
		return
	}
	for end := time.Now().Add(staleTime); ; time.Sleep(stalePoll) {
		conn, err := net.Dial("unix", path)
		if err == nil {
			_ = conn.Close()
			return
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || !there(path, first) {
			return
		}
		if time.Now().After(end) {
			removeSocket(path, first)
			return
		}
	}
}

// there reports whether a name is still that of a file that was seen.
func there(path string, seen fs.FileInfo) bool {
	now, err := os.Lstat(path)
	// The number of a file that is gone may be that of the next one.
	return err == nil && os.SameFile(seen, now) && seen.ModTime().Equal(now.ModTime())
}

// removeSocket removes a socket that was seen before. Only one of several servers removes it:
// as long as the old socket has the name, no process can create a new one, and the remover
// holds a lock on the folder, so that no other removes the socket that the next one has
// created meanwhile.
func removeSocket(path string, seen fs.FileInfo) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return
	}
	defer folder.Close()                                                              // and unlocks it
	if syscall.Flock(int(folder.Fd()), syscall.LOCK_EX) == nil && there(path, seen) { //nolint:gosec // it is a small number
		_ = os.Remove(path)
	}
}

// addressOf is how a client names a listener's address.
func addressOf(listener net.Listener) string {
	if addr := listener.Addr(); addr.Network() == "unix" {
		return "unix:" + addr.String()
	}
	return listener.Addr().String()
}

// removeAddrFile takes the file away, unless somebody else has.
func removeAddrFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeAddrFile writes the address so that a reader sees all of it or nothing.
// It replaces a file, and nothing but a file: as root it could put itself in
// the place of a device.
func writeAddrFile(path, address string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return errors.New("is there and is no file")
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write address file: %w", err)
	}
	_, err = fmt.Fprintln(temporary, address)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write address file: %w", err), os.Remove(temporary.Name()))
	}
	return nil
}

// ownedByUs reports whether a file belongs to the user of this process.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// takenError: somebody else listens on an address.
type takenError struct{ *ConfigError }

func (e takenError) Unwrap() error { return e.ConfigError }
