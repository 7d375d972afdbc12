package approvals

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush drops unread input of a terminal; false if file is no terminal.
func flush(file *os.File) bool {
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	flushed := false
	err = conn.Control(func(fd uintptr) {
		flushed = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) == nil
	})
	return err == nil && flushed
}
