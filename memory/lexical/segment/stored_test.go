package segment

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Head]{
		Message: &storev1.Head{},
		Rich: func(h *Head) {
			h.Stats.Packed, h.Stats.Last = h.Stats.Last, h.Stats.Packed
			h.Stats.Purged, h.Stats.Deleted = h.Stats.Deleted, h.Stats.Purged
		},
		Encode: Head.Encode,
		Decode: DecodeHead,
	})
	storedtest.Check(t, storedtest.Format[List]{Message: &storev1.Segments{}, Encode: List.Encode, Decode: DecodeList})
	storedtest.Check(t, storedtest.Format[Entry]{
		Message: &storev1.Entry{},
		Apart:   []string{"Entry.deflated_terms"},
		Encode:  Entry.Encode,
		Decode:  DecodeEntry,
	})
}
