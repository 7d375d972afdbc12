package assemble

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// FuzzBeginsWith compares beginsWith with what it saves to write.
func FuzzBeginsWith(f *testing.F) {
	for _, text := range []string{
		"", " ", "\n", "one  line\n\tand more ", "  é\u2003→\xff\n", "a b", "a  b c",
	} {
		line := step.OneLine(text)
		for n := range len(line) + 1 {
			f.Add(text, line[:n])
		}
		f.Add(text, line+" ")
		f.Add(text, " "+line)
		f.Add(text, "a"+line)
	}
	f.Fuzz(func(t *testing.T, text, shown string) {
		line := step.OneLine(text)
		if got, want := beginsWith(text, shown), strings.HasPrefix(line, shown); got != want {
			t.Fatalf("%q, %q: got %v, want %v", text, shown, got, want)
		}
		for n := range min(len(line), 9) {
			if !beginsWith(text, line[:n]) {
				t.Fatalf("%q does not begin with %q", text, line[:n])
			}
		}
	})
}
