package mcp

import (
	"strings"
	"testing"
)

// A batch is counted before the protocol looks at it, and no further than it may go.
func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for body, want := range map[string]int{
		ping: 1, "": 1, "[]": 0, "[" + ping + "]": 1, "  [" + ping + "," + ping + "]": 2, "[" + ping + ",": 1, `"["`: 1,
		"[" + strings.Repeat(ping+",", maxBatch-1) + ping + "]": maxBatch,
		"[" + strings.Repeat(ping+",", 100_000) + ping + "]":    maxBatch + 1,
	} {
		if got := batched([]byte(body)); got != want {
			t.Errorf("%d messages in %d bytes that begin %.20q, want %d", got, len(body), body, want)
		}
	}
}
