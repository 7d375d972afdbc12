package lexical

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// However long its terms are, the directory of a merged segment fits one value.
func TestDirectoryFitsOneValue(t *testing.T) {
	for _, bytes := range []uint64{largeSegment - 1, maxMergeBytes} {
		chunks := int(bytes) / chunkLimit(bytes)
		firsts := make([]string, chunks)
		for i := range firsts {
			// Nothing shared, as it is with digests.
			firsts[i] = string([]byte{byte(i >> 8), byte(i)}) + strings.Repeat("x", MaxTermBytes-2)
		}
		if size := len(encodeDirectory(firsts)); size > kv.MaxValueBytes {
			t.Errorf("the directory of a segment of %d bytes takes %d", bytes, size)
		}
	}
}

// Blocks of columns fit one value, whatever the names in them.
func TestColumnsFitOneValue(t *testing.T) {
	rows := make([]row, rowsPerBlock)
	for i := range rows {
		rows[i] = row{
			body: 1 << 20, header: 1 << 20, session: uint64(i+1) << 32, author: strings.Repeat("n", maxNameBytes-4) + string([]byte{byte(i >> 8), byte(i), 1, 1}),
			event: int64(i%2) << 60, create: int64(i%2) << 60, expires: int64(i%2) << 60, superseded: int64(i%2) << 60, importance: 0.3, tier: 4, flags: 0xff,
		}
	}
	if size := len(encodeRows(rows, 0)); size > kv.MaxValueBytes {
		t.Errorf("%d bytes", size)
	}
}
