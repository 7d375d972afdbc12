package compress_test

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// testRef and testPath are what all short forms of the tests refer to.
const (
	testRef  = "0123456789ab"
	testPath = "storage/tool_results/0123456789ab.json"
)

// MustCount returns the counter of a model.
func MustCount(tb testing.TB) func(string) int {
	tb.Helper()
	counter, err := tokens.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return func(text string) int {
		n, err := counter.Count("gpt-4o", text)
		if err != nil {
			tb.Error(err)
		}
		return n.Tokens
	}
}

// MustCompressor returns a compressor that counts as a model does.
func MustCompressor(tb testing.TB, opts *compress.Options) *compress.Compressor {
	tb.Helper()
	return compress.New(MustCount(tb), opts)
}

// result is a result with nothing but its content and its place.
func result(content string) compress.Result {
	return compress.Result{Content: content, Ref: testRef, RefPath: testPath}
}

// words is a text of n characters.
func words(n int) string { return strings.Repeat("nine char", n/9+1)[:n] }
