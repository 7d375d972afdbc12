//go:build embedhelper

package sandbox

import _ "embed"

// embedded is the helper, which `make build` has put there.
//
//go:embed helper.bin
var embedded []byte
