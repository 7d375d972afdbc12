//go:build !linux

package approvals

import "os"

// flush drops nothing: how to differs by system.
func flush(*os.File) bool { return false }
