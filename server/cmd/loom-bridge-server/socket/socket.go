// Package socket is where the server of a data directory is found on its own machine.
//
// Every server listens on the [Path] of its data directory, besides the addresses that it is
// given. So all programs of one user that work on one directory find the same server: the
// hosts of the Model Context Protocol, hooks, the command line, and programs that start a
// server for themselves.
//
// Caveats: two processes with different XDG_RUNTIME_DIR or TMPDIR do not meet.
package socket

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/paths"
)

// maxPath is the longest path that the kernel takes for a socket, in bytes.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// folderMode keeps other users out, and fileMode the programs of other users.
const (
	folderMode fs.FileMode = 0o700
	fileMode   fs.FileMode = 0o600
)

// Path is the socket of a data directory, by whichever way that is named. It lies where no
// confined tool gets, in a folder that no other user may enter, which is made if need be: in
// XDG_RUNTIME_DIR, or else the directory of temporary files, or in /tmp where the path would be
// too long for a socket. It is an error if the folder is not of that kind.
func Path(dataDir string) (string, error) {
	store, err := paths.Resolved(dataDir)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(store))
	own, name := fmt.Sprintf("loom-bridge-%d", os.Getuid()), hex.EncodeToString(hash[:8])+".sock"
	folder := filepath.Join(cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()), own)
	if len(filepath.Join(folder, name)) > maxPath {
		folder = filepath.Join("/tmp", own)
	}
	if err := os.Mkdir(folder, folderMode); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || info.Mode().Perm() != folderMode || !ownedByUs(info) {
		return "", fmt.Errorf("%s is there and is not a folder of this user alone; give --addr", folder)
	}
	return filepath.Join(folder, name), nil
}

// Answers reports whether a server listens on a socket.
func Answers(path string) bool {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Listen opens a socket that this user alone may connect to. One that a killed server left
// behind is removed. A socket that is served gives syscall.EADDRINUSE; a path that is too long
// for a socket is an error.
//
// Closing the listener removes the socket, unless it has become another server's.
func Listen(path string) (net.Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("the path of the socket has %d bytes, at most %d", len(path), maxPath)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// A socket gets its name when it is listened on already. So one that refuses connections
	// is nobody's, and need not be waited for.
	early := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%d-%d", os.Getpid(), made.Add(1)))
	opened, err := net.ListenUnix("unix", &net.UnixAddr{Name: early, Net: "unix"})
	if err != nil {
		return nil, err
	}
	opened.SetUnlinkOnClose(false)
	err = os.Chmod(early, fileMode)
	info, statErr := os.Lstat(early)
	if err = errors.Join(err, statErr); err == nil {
		err = os.Link(early, path)
	}
	if err = errors.Join(err, os.Remove(early)); err != nil {
		_ = opened.Close()
		if errors.Is(err, fs.ErrExist) {
			err = &net.OpError{Op: "listen", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: syscall.EADDRINUSE}
		}
		return nil, err
	}
	return &listener{Listener: opened, path: path, info: info}, nil
}

// listener is a socket under the name that it was given.
type listener struct {
	net.Listener

	path  string
	info  fs.FileInfo
	close sync.Once
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

func (l *listener) Close() error {
	l.close.Do(func() { remove(l.path, l.info) })
	return l.Listener.Close()
}

// made numbers the sockets of this process.
var made atomic.Uint64

// removeStale removes a socket without a listener.
func removeStale(path string) error {
	seen, err := os.Lstat(path)
	if err != nil || seen.Mode().Type() != os.ModeSocket {
		return nil
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		return conn.Close() // and is refused to the caller, as it is in use
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		remove(path, seen)
	}
	return nil
}

// remove removes a socket that was seen before. Only one of several servers removes it: each
// holds a lock on the folder meanwhile, so that none removes the socket that the next one
// has made.
func remove(path string, seen fs.FileInfo) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return
	}
	defer folder.Close()                                                              // and unlocks it
	if syscall.Flock(int(folder.Fd()), syscall.LOCK_EX) == nil && there(path, seen) { //nolint:gosec // it is a small number
		_ = os.Remove(path)
	}
}

// there reports whether a name is still that of a file that was seen.
func there(path string, seen fs.FileInfo) bool {
	now, err := os.Lstat(path)
	// The number of a file that is gone may be that of the next one.
	return err == nil && os.SameFile(seen, now) && seen.ModTime().Equal(now.ModTime())
}

// ownedByUs reports whether a file belongs to the user of this process.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
