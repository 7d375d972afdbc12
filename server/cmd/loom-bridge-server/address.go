package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/socket"
)

// listen opens a listening address. An address that somebody else has says so,
// and how to choose another.
func listen(field, addr string) (net.Listener, error) {
	network, address, err := splitAddr(addr)
	if err != nil {
		return nil, &ConfigError{field, addr, err.Error()}
	}
	opening := net.Listen
	if network == "unix" {
		opening = func(_, path string) (net.Listener, error) { return socket.Listen(path) }
	}
	listener, err := opening(network, address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, takenError{&ConfigError{field, addr, "the address is in use; stop the other server or give another address"}}
	case err != nil:
		return nil, &ConfigError{field, addr, err.Error()}
	}
	return listener, nil
}

// local reports whether only this machine reaches an address.
func local(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
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

// takenError: somebody else listens on an address.
type takenError struct{ *ConfigError }

func (e takenError) Unwrap() error { return e.ConfigError }
