package blob_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// largeBytes is what a large result has.
const largeBytes = 100 << 20

// logOf is text that looks like the output of a long build.
func logOf(n int) []byte {
	random := rand.New(rand.NewPCG(3, 3))
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "2026-01-02T12:%02d:%02d.%03d INFO  worker-%d compiled src/package%d/file%d.go in %dms (cache %x)\n",
			i/1000%60, i/10%60, i%1000, random.IntN(16), random.IntN(500), random.IntN(5000), random.IntN(900), random.Uint64())
	}
	return b.Bytes()[:n]
}

// large is a store on disk with one large blob.
func large(tb testing.TB, body []byte) (*fixture, blob.Entry) {
	tb.Helper()
	db, err := rockskv.Open(filepath.Join(tb.TempDir(), "store"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	f := newFixtureOn(tb, db, blob.Options{SearchTime: -1})
	return f, f.mustStage(tb, alice, body, blob.Entry{StepID: "step_001", Category: "shell", Kind: "log"})
}

// A range costs its own chunks, wherever it lies.
func BenchmarkRange(b *testing.B) {
	f, e := large(b, noise(1, largeBytes))
	random := rand.New(rand.NewPCG(4, 4))
	const size = 4 << 10
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		got := mustCollect(b, f.Read(b.Context(), alice, e, random.Int64N(largeBytes-size), size))
		times = append(times, time.Since(start))
		if len(got) != size {
			b.Fatalf("%d bytes", len(got))
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}

func BenchmarkSearch(b *testing.B) {
	contents := map[string][]byte{"log": logOf(largeBytes), "noise": noise(2, largeBytes)}
	patterns := []struct {
		name string
		make func() (*blob.LinePattern, error)
	}{
		{"literal", func() (*blob.LinePattern, error) { return blob.Literal("FATAL: out of memory", false) }},
		{"literal in either case", func() (*blob.LinePattern, error) { return blob.Literal("fatal: out of memory", true) }},
		{"regexp", func() (*blob.LinePattern, error) { return blob.Regexp(`FATAL: (\w+) of memory$`, false) }},
		{"alternatives", func() (*blob.LinePattern, error) { return blob.Regexp(`(panic|FATAL|Traceback): `, false) }},
		{"regexp without a text", func() (*blob.LinePattern, error) { return blob.Regexp(`[0-9]{12}`, false) }},
	}
	for _, content := range []string{"log", "noise"} {
		f, e := large(b, contents[content])
		for _, p := range patterns {
			b.Run(content+"/"+p.name, func(b *testing.B) {
				pattern, err := p.make()
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(largeBytes)
				for b.Loop() {
					for _, err := range f.Search(b.Context(), alice, e, pattern, blob.From{}) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
