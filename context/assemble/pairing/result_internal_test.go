package pairing

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// FuzzBeginsWith compares beginsWith with what it saves to write.
func FuzzBeginsWith(f *testing.F) {
	for _, s := range []string{
		"", " ", "\n", "one  line\n\tand more ", "  é\u2003→\xff\n", "a b", "a  b c",
	} {
		line := text.OneLine(s)
		for n := range len(line) + 1 {
			f.Add(s, line[:n])
		}
		f.Add(s, line+" ")
		f.Add(s, " "+line)
		f.Add(s, "a"+line)
	}
	f.Fuzz(func(t *testing.T, s, shown string) {
		line := text.OneLine(s)
		if got, want := beginsWith(s, shown), strings.HasPrefix(line, shown); got != want {
			t.Fatalf("%q, %q: got %v, want %v", s, shown, got, want)
		}
		for n := range min(len(line), 9) {
			if !beginsWith(s, line[:n]) {
				t.Fatalf("%q does not begin with %q", s, line[:n])
			}
		}
	})
}
