package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// makeEphemeral makes the directory of a store that is removed with everything
// else that was opened, after the store is closed.
func makeEphemeral(opened *closers) (string, error) {
	dir, err := os.MkdirTemp("", "loom-bridge-ephemeral-*")
	if err != nil {
		return "", &ConfigError{"ephemeral", true, err.Error()}
	}
	opened.add(func() error { return os.RemoveAll(dir) })
	return filepath.Join(dir, "store"), nil
}

// nameHolder adds to the error about a store in use which process has it, where that is known.
func nameHolder(err error, dir string) error {
	if !errors.Is(err, kv.ErrLocked) {
		return err
	}
	if holder, ok := holderOf(dir); ok {
		return fmt.Errorf("%w; %s has it", err, holder)
	}
	return err
}

// orEphemeral adds to the error about a store in use what else a server can do.
func (c Config) orEphemeral(err error) error {
	if !errors.Is(err, kv.ErrLocked) || c.Store.Far() {
		return err
	}
	return fmt.Errorf("%w. --ephemeral (%s=1) makes a store that is removed at the end", err, envName("ephemeral"))
}

// usedToo puts before the error about an address that is taken that the store is in use, too.
func (c Config) usedToo(err error) error {
	if _, taken := errors.AsType[takenError](err); !taken || c.Ephemeral || c.Store.Far() {
		return err
	}
	holder, ok := holderOf(c.DataDir)
	if !ok {
		return err
	}
	return fmt.Errorf("--%s (%s) %q: %s has it; and %w", keyDataDir, envName(keyDataDir), c.DataDir, holder, err)
}

// holderOf names the process that has locked a directory.
func holderOf(dir string) (name string, ok bool) {
	pid, ok := lockHolder(dir)
	if !ok {
		return "", false
	}
	comm, err := os.ReadFile("/proc/" + pid + "/comm")
	if err != nil {
		return "process " + pid, true
	}
	return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(comm))), true
}

// lockHolder finds the process that has locked a directory in the kernel's list of
// locks. Its lines are like "1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", with
// the device and the inode. Systems without the list, and file systems that show
// another device than their own, say nothing.
func lockHolder(dir string) (pid string, ok bool) {
	var info syscall.Stat_t
	if err := syscall.Stat(dir, &info); err != nil {
		return "", false
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return "", false
	}
	defer locks.Close()
	place := placeOf(info.Dev, info.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 5 && words[1] == "FLOCK" && words[5] == place {
			return words[4], true
		}
	}
	return "", false
}

// placeOf writes a file's device and inode as Linux lists them. Systems differ in
// the type of the device.
func placeOf[D int32 | uint32 | uint64](device D, inode uint64) string {
	dev := uint64(device)
	major, minor := dev>>8&0xfff|dev>>32&^0xfff, dev&0xff|dev>>12&^0xff
	return fmt.Sprintf("%02x:%02x:%d", major, minor, inode)
}
