package live

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[intent]{
		Message: &storev1.Erasure{},
		Rich: func(i *intent) {
			i.subject.Kind, i.subject.Shared = erase.Agent, ""
			i.subject.Filter, i.memories[0].Kind, i.memories[1].Kind, i.digests = "", kv.OwnerUser, kv.OwnerSpace, []string{"a1b2", "c3"}
		},
		Apart:  []string{"Erasure.filter", "Erasure.shared"},
		Encode: func(i intent) []byte { return i.encode() },
		Decode: func(value []byte) (intent, error) { return decodeIntent("t", value) },
	})
}
