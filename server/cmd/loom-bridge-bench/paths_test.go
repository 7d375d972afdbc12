//go:build linux && cgo && !norocksdb && !race

package main

import (
	"strings"
	"testing"
)

// No call of a hot path allocates, reads or writes more than was committed last. The
// figures are of the whole process, so nothing else may run in it.
func TestPaths(t *testing.T) {
	var out strings.Builder
	p := newPathRun(&out)
	err := p.run(t.Context())
	if err == nil {
		err = p.compare("paths.json")
	}
	t.Log("\n" + out.String())
	if err != nil {
		t.Error(err)
	}
}
