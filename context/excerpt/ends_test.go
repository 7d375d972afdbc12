package excerpt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
)

// Whole lines stay where they are three fifths of what is left; elsewhere the cut goes
// through a line, and through a name only where the names in the rest are not listed.
func TestEnds(t *testing.T) {
	for _, tt := range []struct{ text, head, named, tail, namedTail string }{
		{"0123456789", "0123456789", "0123456789", "0123456789", "0123456789"},
		{"012345\n789 more 012\n456789", "012345", "012345", "456789", "456789"},
		{"a b name_one is not name_two c d", "a b name_o", "a b ", "ame_two c d"[1:], " c d"},
	} {
		for what, got := range map[string][2]string{
			"head": {excerpt.Head(tt.text, 10), tt.head}, "named head": {excerpt.NamedHead(tt.text, 10), tt.named},
			"tail": {excerpt.Tail(tt.text, 10), tt.tail}, "named tail": {excerpt.NamedTail(tt.text, 10), tt.namedTail},
		} {
			if got[0] != got[1] {
				t.Errorf("the %s of %q is %q, want %q", what, tt.text, got[0], got[1])
			}
		}
	}
	if head, tail := excerpt.Halves(300, false); head != 200 || tail != 100 {
		t.Errorf("of 300 bytes %d and %d", head, tail)
	}
	if head, tail := excerpt.Halves(300, true); head != 100 || tail != 200 {
		t.Errorf("of 300 bytes of a failure %d and %d", head, tail)
	}
}

// FuzzEnds: an end keeps its bound, is an end, and splits no character.
func FuzzEnds(f *testing.F) {
	f.Add("line one\nline two\nline three", 12)
	f.Add("äöü name/of/a_file.go\xff", 9)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 0), len(s)+1)
		for _, head := range []string{excerpt.Head(s, n), excerpt.NamedHead(s, n)} {
			if len(head) > n || !strings.HasPrefix(s, head) || utf8.ValidString(s) && !utf8.ValidString(head) {
				t.Fatalf("%q is no head of %q of %d bytes", head, s, n)
			}
		}
		for _, tail := range []string{excerpt.Tail(s, n), excerpt.NamedTail(s, n)} {
			if len(tail) > n || !strings.HasSuffix(s, tail) || utf8.ValidString(s) && !utf8.ValidString(tail) {
				t.Fatalf("%q is no tail of %q of %d bytes", tail, s, n)
			}
		}
	})
}

// What was raised is kept beside the first and last lines that say what went wrong,
// each once and in order.
func TestErrorLines(t *testing.T) {
	var b strings.Builder
	b.WriteString("error 1\nerror 2\nfatal: 3\nerror 4\nValueError: early\nBigError: 5\nthing not found 6\r\nerror 7\nFAILED 8\nno_error here\nerrors: none\n")
	var got []string
	for _, line := range excerpt.ErrorLines(b.String()) {
		got = append(got, line.Of(b.String()))
	}
	if want := "error 1|error 2|fatal: 3|BigError: 5|thing not found 6|error 7|FAILED 8"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	long := "KeyError: " + strings.Repeat("x", 2000)
	if got := excerpt.ErrorLines("TypeError: short\n" + long); len(got) != 1 || got[0].From != 0 {
		t.Errorf("of a long line: %v", got)
	}
}
