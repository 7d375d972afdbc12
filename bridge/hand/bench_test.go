package hand_test

import (
	"strings"
	"testing"
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
