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

// nameHolder adds to the error about a store in use which process has it, where
// that is known, and what else to do.
func (c Config) nameHolder(err error) error {
	dir := c.DataDir
	if !errors.Is(err, kv.ErrLocked) || c.Store.Far() { // PostgreSQL has named it
		return err
	}
	holder := "another process"
	if pid, ok := lockHolder(dir); ok {
		holder = "process " + pid
		if name, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil {
			holder += " (" + strings.TrimSpace(string(name)) + ")"
		}
	}
	return fmt.Errorf("%w; %s has it. --ephemeral (%s=1) makes a store that is removed at the end", err, holder, envName("ephemeral"))
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
