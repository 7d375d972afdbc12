package hand_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// BenchmarkOverhead is a recorded read of 4 KiB on an engine that costs nothing:
// what the hand itself takes.
func BenchmarkOverhead(b *testing.B) {
	w := MustWorld(b, map[string]string{"file": strings.Repeat("the quick brown fox jumps over it\n", 4096/34)}, nil)
	req := request("fs:read_file", map[string]any{"path": "file"})
	for b.Loop() {
		w.must(req)
	}
}

// BenchmarkRecordOverhead is a report of what a command printed, on the same engine.
func BenchmarkRecordOverhead(b *testing.B) {
	for _, size := range []int{1 << 10, 4 << 10, 20 << 10, 1000 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			w := MustWorld(b, nil, nil)
			var outputs [8][]byte
			for i := range outputs {
				var text strings.Builder
				for n := 0; text.Len() < size; n++ {
					fmt.Fprintf(&text, "src/package_%d/file_%d.py:%d: the symbol %d is compiled\n", n%50, n*7+i, n, n*31+i)
				}
				outputs[i], _ = json.Marshal(map[string]any{"output": text.String()[:size], "exit_code": 0})
			}
			args, n := json.RawMessage(`{"command":"grep -rn word src | head -20"}`), 0
			for b.Loop() {
				n++
				_, err := w.Record(b.Context(), hand.Recorded{
					Request: hand.Request{Scope: agent, SessionID: "s", Name: "bash", Args: args},
					Output:  step.Original{Form: step.FormJSON, Data: outputs[n%len(outputs)]},
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
