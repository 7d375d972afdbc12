//go:build !embedhelper

package sandbox

// embedded is empty: the process starts itself as its helper.
var embedded []byte
