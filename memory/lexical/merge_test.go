package lexical

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// However long its terms are, the directory of a merged segment fits one value.
func TestDirectoryFitsOneValue(t *testing.T) {
	for _, bytes := range []uint64{segment.LargeSegment - 1, maxMergeBytes} {
		chunks := int(bytes) / segment.ChunkLimit(bytes)
		firsts := make([]string, chunks)
		for i := range firsts {
			// Nothing shared, as it is with digests.
			firsts[i] = string([]byte{byte(i >> 8), byte(i)}) + strings.Repeat("x", segment.MaxTermBytes-2)
		}
		if size := len(segment.EncodeDirectory(firsts)); size > kv.MaxValueBytes {
			t.Errorf("the directory of a segment of %d bytes takes %d", bytes, size)
		}
	}
}
