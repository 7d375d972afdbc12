package step_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// BenchmarkReduceShell is the output of a command at several lengths: what is
// looked at of a long one is bounded.
func BenchmarkReduceShell(b *testing.B) {
	r := step.NewReducer(nil)
	for _, n := range []int{4 << 10, 64 << 10, 1 << 20} {
		var out strings.Builder
		for i := 0; out.Len() < n; i++ {
			fmt.Fprintf(&out, "src/package_%d/file.go:%d: func Name%d() error // what it does\n", i%50, i, i)
		}
		call := shell("go build ./...", out.String()[:n], "", 1)
		b.Run(fmt.Sprint(n>>10, "KiB"), func(b *testing.B) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				r.Reduce(call)
			}
		})
	}
}
