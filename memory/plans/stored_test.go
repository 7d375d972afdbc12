package plans

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[counters]{Message: &storev1.PlanCounters{}, Encode: counters.encode, Decode: decodeCounters})
	storedtest.Check(t, storedtest.Format[Plan]{Message: &storev1.Plan{}, Encode: encodePlan, Decode: decodePlan})
	storedtest.Check(t, storedtest.Format[Execution]{Message: &storev1.Execution{}, Encode: encodeExecution, Decode: decodeExecution})
	storedtest.Check(t, storedtest.Format[line]{Message: &storev1.PlanLine{}, Encode: encodeLine, Decode: decodeLine})
}
