//go:build unix

package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// sourceOf identifies a file of the store that never changes; empty for
// one that may change.
func sourceOf(info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if extension := filepath.Ext(info.Name()); !ok || extension != ".sst" && extension != ".blob" {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d", stat.Dev, stat.Ino, info.ModTime().UnixNano())
}
