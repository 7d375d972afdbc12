//go:build !cgo || norocksdb

package rockskv_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

var (
	_ kv.Engine       = (*rockskv.DB)(nil)
	_ kv.Checkpointer = (*rockskv.DB)(nil)
	_ kv.RangeDropper = (*rockskv.DB)(nil)
)

func TestStubSaysHow(t *testing.T) {
	_, err := rockskv.Open(t.TempDir(), nil)
	if !errors.Is(err, rockskv.ErrNoRocksDB) || !strings.Contains(err.Error(), "apt-get install librocksdb-dev") {
		t.Errorf("open: error %v, want ErrNoRocksDB", err)
	}
}
