package working

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Working]{Message: &storev1.Working{}, Apart: []string{"Working.time"}, Encode: Encode, Decode: Decode})
	storedtest.Check(t, storedtest.Format[Snapshot]{
		Message: &storev1.Snapshot{},
		Apart:   []string{"Working.time"},
		Encode:  func(s Snapshot) []byte { return EncodeSnapshot(&s) },
		Decode:  DecodeSnapshot,
	})
}
