//go:build !linux

package builtin

// yield does nothing: elsewhere a thread has no niceness of its own.
func yield() {}
