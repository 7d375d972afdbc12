package hand

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	type kept struct {
		number uint64
		answer Answer
	}
	storedtest.Check(t, storedtest.Format[kept]{
		Message: &storev1.CallAnswer{},
		Encode:  func(k kept) []byte { return encodeKept(k.number, k.answer) },
		Decode: func(value []byte) (k kept, err error) {
			k.number, k.answer, err = decodeKept(value)
			return k, err
		},
	})
}
