package registry

import (
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Bridge]{
		Message: &storev1.Registration{},
		Encode:  Bridge.encode,
		Decode:  func(value []byte) (Bridge, error) { return decodeBridge("", value), nil },
	})
	storedtest.Check(t, storedtest.Format[time.Time]{
		Message: &storev1.BridgeLease{},
		Encode:  func(until time.Time) []byte { return encodeLease(7, until) },
		Decode:  func(value []byte) (time.Time, error) { return decodeLease(value), nil },
	})
	storedtest.Check(t, storedtest.Format[uint64]{
		Message: &storev1.Epoch{},
		Encode:  func(last uint64) []byte { return encodeLease(last, time.Time{}) },
		Decode:  func(value []byte) (uint64, error) { return decodeEpoch(value), nil },
	})
}
