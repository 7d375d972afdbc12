package tools_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func TestErrorfKeepsItsCause(t *testing.T) {
	err := tools.Errorf(tools.NotFound, "File not found: %s: %w", "a", fs.ErrNotExist)
	if !errors.Is(err, fs.ErrNotExist) || err.Code != tools.NotFound || err.Error() != "File not found: a: file does not exist" {
		t.Errorf("got %q with code %s, cause %v", err, err.Code, err.Cause)
	}
}
