package step

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Step]{
		Message: &storev1.Step{},
		Encode:  func(s Step) []byte { return Append(nil, s) },
		Decode:  Decode,
	})
}
