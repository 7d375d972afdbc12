//go:build unix

package compress_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/compress"
)

// Hostile results take no longer than others of their length.
func TestWorkIsLinear(t *testing.T) {
	size := 1 << 20
	if testing.Short() {
		size = 1 << 18
	}
	object := func(member string) string {
		return "{" + strings.Repeat(member+",", size/(len(member)+1)) + member + "}"
	}
	texts := map[string]string{
		"open arrays":      strings.Repeat("[", size),
		"closed arrays":    strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"deepest arrays":   "[" + strings.Repeat(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+",", size/18001) + "1]",
		"many keys":        object(`"a":1`),
		"many objects":     object(`"a":{}`),
		"many hits":        `{"results":[` + strings.Repeat(`{"title":"a"},`, size/14) + `1]}`,
		"nested results":   strings.Repeat(`{"results":`, 5000) + "[1]" + strings.Repeat("}", 5000) + strings.Repeat(" ", size),
		"one long string":  `{"title":"` + strings.Repeat(`\ud83d\ude00`, size/12) + `"}`,
		"long hit":         `[{"title":"` + strings.Repeat(`\\`, size/2) + `"}]`,
		"long key":         `{"` + strings.Repeat(`k`, size) + `":1}`,
		"long number":      `{"n":` + strings.Repeat("9", size) + `}`,
		"spaces":           strings.Repeat(" ", size),
		"spaces in a hit":  `[{"title":"` + strings.Repeat(" ", size) + `"}]`,
		"line feeds":       strings.Repeat("\n", size),
		"control":          strings.Repeat("\x1b", size),
		"one letter":       strings.Repeat("a", size),
		"base64":           "data:image/png;base64," + strings.Repeat("A", size),
		"almost base64":    "data:image/png;base64," + strings.Repeat("A", size) + "!",
		"data and nothing": "data:" + strings.Repeat("d", size),
	}
	usual := result(strings.Repeat("a usual line of text\n", size/21))
	// What takes time in proportion to its square would take minutes. A machine
	// that does other things, too, takes longer, but not more of its time for this.
	limit := 20*timed(t, usual) + 2*time.Second
	for name, text := range texts {
		for _, kind := range compress.Kinds() {
			r := result(text)
			r.Kind = kind
			if took := timed(t, r); took > limit {
				t.Errorf("%s as %s: %v, a usual text takes less than %v", name, kind, took, limit)
			}
		}
	}
}

func timed(tb testing.TB, r compress.Result) time.Duration {
	tb.Helper()
	c := compress.New(quarters, nil)
	start := spent(tb)
	c.Compress(r)
	r.Hint = compress.HintSkip
	c.Compress(r)
	return spent(tb) - start
}

// spent is the time of processors that this process has taken so far.
func spent(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
