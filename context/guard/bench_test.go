package guard_test

import (
	"os"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/guard"
)

// What guarding costs for a file of code: Text of what stands among a prompt's own lines,
// Output of results, of which each prompt shows many.
func BenchmarkGuard(b *testing.B) {
	code, err := os.ReadFile("guard.go")
	if err != nil {
		b.Fatal(err)
	}
	for name, guarded := range map[string]func(string) string{"text": guard.Text, "output": guard.Output} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(code)))
			for b.Loop() {
				guarded(string(code))
			}
		})
	}
}
