package access

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Value]{
		Message: &storev1.Accesses{},
		Encode:  Value.encode,
		Decode:  func(value []byte) (Value, error) { return decode(value), nil },
	})
}
