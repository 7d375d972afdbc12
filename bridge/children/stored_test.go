package children

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Child]{
		Message: &storev1.Child{},
		Apart:   []string{"Child.all_tools"},
		Encode:  func(c Child) []byte { return c.encode() },
		Decode:  func(value []byte) (Child, error) { return decode(kv.AgentScope("t", "a"), value) },
	})
	storedtest.Check(t, storedtest.Format[string]{Message: &storev1.BlobGrant{}, Encode: encodeGrant, Decode: decodeGrant})
}
