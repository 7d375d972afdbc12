//go:build !linux || !amd64

package inner

// Main does nothing: there are no stages here.
func Main() {}
