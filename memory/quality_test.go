package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// MustEvalFile returns the path of a file of the evaluation data, which is not
// part of the project.
func MustEvalFile(tb testing.TB, path ...string) string {
	tb.Helper()
	root := os.Getenv("LOOM_EVAL_DATA")
	if root == "" {
		tb.Skip("LOOM_EVAL_DATA names no folder with the evaluation data")
	}
	file := filepath.Join(append([]string{root}, path...)...)
	if _, err := os.Stat(file); err != nil {
		tb.Fatal(err)
	}
	return file
}

// MustStore returns a store in memory.
func MustStore(tb testing.TB) *memory.Store {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, nil)
	tb.Cleanup(func() {
		_ = store.Close()
		_ = writer.Close()
	})
	return store
}

// atLeast fails the test where a figure is below its floor. Figures are in per
// cent.
func atLeast(tb testing.TB, what string, got, floor float64) {
	tb.Helper()
	if got < floor {
		tb.Errorf("%s is %.2f, the floor is %.2f", what, got, floor)
	}
}
