package agents

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestGoldenBytes(t *testing.T) {
	storedtest.Check(t, storedtest.Format[State]{Message: &storev1.AgentState{}, Encode: encodeState, Decode: decodeState})
	storedtest.Check(t, storedtest.Format[storedGap]{Message: &storev1.Gap{}, Encode: encodeGap, Decode: decodeGap})
	storedtest.Check(t, storedtest.Format[knownTool]{Message: &storev1.KnownTool{}, Encode: encodeKnown, Decode: decodeKnown})
}
