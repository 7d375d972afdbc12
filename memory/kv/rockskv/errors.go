//go:build cgo && !norocksdb

package rockskv

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// RocksDB's C interface hands errors over as text only. The texts below come from
// librocksdb 7.8.3: the kind, what it was doing, and the system's own words.

// openError says which of the contract's errors a failed open was.
func openError(err error) error {
	text := err.Error()
	kind := kv.ErrDamaged
	switch {
	case strings.Contains(text, "LOCK: No locks available"),
		strings.Contains(text, "LOCK: Resource temporarily unavailable"):
		kind = kv.ErrLocked
	case noSpace(text):
		kind = kv.ErrFull
	case strings.Contains(text, ": Permission denied"), strings.Contains(text, ": Read-only file system"):
		kind = fs.ErrPermission
	case strings.Contains(text, ": Too many open files"), strings.Contains(text, ": Input/output error"),
		strings.Contains(text, ": Cannot allocate memory"):
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// writeError says whether a failed write is known to have left nothing behind.
func writeError(err error) error {
	text := err.Error()
	// Out of room while appending, the log ends with a torn record that a
	// reopening drops. Out of room while syncing, the record may be whole.
	if noSpace(text) && !strings.Contains(text, "While fdatasync") && !strings.Contains(text, "While fsync") {
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
}

// readError marks what RocksDB found broken, or not at all.
func readError(err error) error {
	if text := err.Error(); strings.Contains(text, "Corruption: ") || strings.Contains(text, "No such file or directory: ") {
		return fmt.Errorf("%w: %w", kv.ErrDamaged, err)
	}
	return err
}

func noSpace(text string) bool {
	return strings.Contains(text, "No space left on device") || strings.Contains(text, "Disk quota exceeded")
}
