package lease

import (
	"context"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[state]{
		Message: &storev1.Lease{},
		Encode:  state.encode,
		Decode: func(value []byte) (state, error) {
			return Tenant("t", "w").read(t.Context(), func(context.Context, kv.Keyspace, []byte) ([]byte, error) { return value, nil })
		},
	})
}
