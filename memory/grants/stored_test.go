package grants

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[memory]{
		Message: &storev1.MemoryGrants{},
		Encode:  func(m memory) []byte { return m.encode() },
		Decode: func(value []byte) (memory, error) {
			m, err := decode(value)
			if err != nil {
				return memory{}, err
			}
			return *m, nil
		},
	})
}
