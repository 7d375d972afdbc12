package text_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// FuzzCuts: a cut keeps its bound and a beginning or an end of the text, splits no
// character of what is UTF-8, and takes no more away than it must.
func FuzzCuts(f *testing.F) {
	for _, seed := range []string{"", "plain", "äöü😀", "\xff\xfe\xff\xfe\xff", "e\u0301 a\n b", "\x80\x80\x80\x80\x80\x80"} {
		for _, n := range []int{-1, 0, 1, 3, 100} {
			f.Add(seed, n)
		}
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(n, len(s)+2)
		head, tail := text.Head(s, n), text.Tail(s, n)
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) {
			t.Fatalf("%q and %q are no ends of %q", head, tail, s)
		}
		if least := min(len(s), max(n, 0)) - utf8.UTFMax + 1; len(head) < least || len(tail) < least {
			t.Fatalf("%q and %q lack more than a character of %d bytes", head, tail, n)
		}
		if len(head) > max(n, 0) || len(tail) > max(n, 0) {
			t.Fatalf("%q or %q is over %d bytes", head, tail, n)
		}
		if utf8.ValidString(s) && (!utf8.ValidString(head) || !utf8.ValidString(tail)) {
			t.Fatalf("%q or %q is a part of a character", head, tail)
		}
		if got := string(text.Head([]byte(s), n)); got != head {
			t.Fatalf("of bytes the head is %q, of text %q", got, head)
		}
		sameChars(t, s, n)
		if got := text.Cut(s, n, text.Dots); len(s) <= n && got != s || len(s) > n && got != head+text.Dots {
			t.Fatalf("Cut(%q, %d) = %q", s, n, got)
		}
		if whole := string(text.WholeChars([]byte(s))); !strings.HasPrefix(s, whole) || len(s)-len(whole) >= utf8.UTFMax || utf8.ValidString(s) && whole != s {
			t.Fatalf("the whole characters of %q are %q", s, whole)
		}
		if got, want := text.Valid(s), strings.ToValidUTF8(s, "\uFFFD"); got != want {
			t.Fatalf("Valid(%q) = %q, want %q", s, got, want)
		}
		sameLine(t, s, n)
	})
}

// sameChars compares cuts by characters with slices of runes.
func sameChars(t *testing.T, s string, n int) {
	t.Helper()
	if !utf8.ValidString(s) {
		return
	}
	runes := []rune(s)
	size := min(max(n, 0), len(runes))
	head, more := text.HeadChars(s, n)
	if want := string(runes[:size]); head != want || more != (size < len(runes)) {
		t.Fatalf("HeadChars(%q, %d) = %q, %t, want %q", s, n, head, more, want)
	}
	if got := text.CutChars(s, n, "+"); more && got != head+"+" || !more && got != s {
		t.Fatalf("CutChars(%q, %d) = %q", s, n, got)
	}
	tail, more := text.TailChars(s, n)
	if want := string(runes[len(runes)-size:]); tail != want || more != (size < len(runes)) {
		t.Fatalf("TailChars(%q, %d) = %q, %t, want %q", s, n, tail, more, want)
	}
}

// sameLine compares one line with the fields of the text.
func sameLine(t *testing.T, s string, n int) {
	t.Helper()
	if !utf8.ValidString(s) {
		return
	}
	shown := strings.Map(func(r rune) rune {
		for _, hidden := range [][2]rune{
			{0xad, 0xad},
			{0x34f, 0x34f},
			{0x61c, 0x61c},
			{0x115f, 0x1160},
			{0x17b4, 0x17b5},
			{0x180e, 0x180e},
			{0x200b, 0x200b},
			{0x200e, 0x200f},
			{0x202a, 0x202e},
			{0x2060, 0x206f},
			{0x3164, 0x3164},
			{0xfeff, 0xfeff},
			{0xffa0, 0xffa0},
			{0xfff9, 0xfffb},
			{0x1bca0, 0x1bca3},
			{0x1d173, 0x1d17a},
			{0xe0000, 0xe0fff},
		} {
			if hidden[0] <= r && r <= hidden[1] {
				return -1
			}
		}
		return r
	}, s)
	want := strings.Join(strings.FieldsFunc(shown, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if got := text.OneLine(s); got != want {
		t.Fatalf("OneLine(%q) = %q, want %q", s, got, want)
	}
	head, cut := text.OneLineHead(s, n)
	if !strings.HasPrefix(want, head) || utf8.RuneCountInString(head) > max(n, 0) || cut != (head != want) {
		t.Fatalf("OneLineHead(%q, %d) = %q, %t of %q", s, n, head, cut, want)
	}
	if got, want := text.CountLines(s), int64(len(strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n"))); s != "" && got != want {
		t.Fatalf("CountLines(%q) = %d, want %d", s, got, want)
	}
}
