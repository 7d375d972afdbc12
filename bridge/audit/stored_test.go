package audit

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Record]{Message: &storev1.AuditRecord{}, Encode: encodeRecord, Decode: decodeRecord})
}
