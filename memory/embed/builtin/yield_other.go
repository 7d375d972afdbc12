//go:build !linux

package builtin

// yield does nothing: on other systems a thread has no niceness.
func yield() {}
