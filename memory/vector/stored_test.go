package vector

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[directory]{Message: &storev1.Spaces{}, Encode: directory.encode, Decode: decodeDirectory})
	storedtest.Check(t, storedtest.Format[head]{
		Message: &storev1.CodesHead{},
		Rich:    func(h *head) { h.last, h.packed = h.packed, h.last },
		Encode:  head.encode,
		Decode: func(value []byte) (h head, err error) {
			err = h.decode(value)
			return h, err
		},
	})
	storedtest.Check(t, storedtest.Format[[]blockInfo]{Message: &storev1.Blocks{}, Encode: encodeList, Decode: decodeList})
}
