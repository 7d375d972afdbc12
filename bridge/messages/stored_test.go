package messages

import (
	"maps"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Message]{
		Message: &storev1.DirectMessage{},
		Encode:  func(m Message) []byte { return m.encode() },
		Decode:  decode,
	})
	storedtest.Check(t, storedtest.Format[counts]{
		Message: &storev1.MessageCounts{},
		Encode:  func(c counts) []byte { return c.encode(slices.Sorted(maps.Keys(c))) },
		Decode:  decodeCounts,
	})
}
