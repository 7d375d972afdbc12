//go:build !linux

package inner

// Main does nothing: there are no stages here.
func Main() {}
