package blob

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// A number fits into the longest paths, whatever they are made of.
func TestNumbered(t *testing.T) {
	const longest = MaxPathBytes - numberBytes
	for _, wanted := range []string{
		"a/b.c", "a/b", strings.Repeat("x", longest), strings.Repeat("x", longest-4) + ".txt",
		"x." + strings.Repeat("y", longest-2), strings.Repeat("é", longest/2), "." + strings.Repeat("y", longest-1),
	} {
		if numbered(wanted, 1) != wanted {
			t.Errorf("the first %.20s… is %.20s…", wanted, numbered(wanted, 1))
		}
		seen := map[string]bool{}
		for _, n := range []uint64{2, 999, 1000, 9999, 10_000, 123_456_789, math.MaxUint64} {
			p := numbered(wanted, n)
			if seen[p] || len(p) > MaxPathBytes || !utf8.ValidString(p) {
				t.Errorf("%d of %.20s… is %.20s…, %d bytes", n, wanted, p, len(p))
			}
			seen[p] = true
		}
	}
	for n, want := range map[uint64]string{2: "a/b_2.c", 1000: "a/b_1000.c", 12345: "a/b_12345.c"} {
		if got := numbered("a/b.c", n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
