package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain äöü 漢字\n\tx":  "plain äöü 漢字\n\tx",
		"a\u202egpj.exe":     "a<U+202E>gpj.exe",
		"r\u200bm":           "r<U+200B>m",
		"x\r\x1b[2Ky":        "x<U+000D><U+001B>[2Ky",
		"\u00a0\u2028\u3000": "<U+00A0><U+2028><U+3000>",
		"\u3164\ufe0f\u2800": "<U+3164><U+FE0F><U+2800>",
		"\U000e0041\u0085":   "<U+E0041><U+0085>",
		"a\xffb\ufffd":       "a<0xFF>b\ufffd",
	} {
		if got := text.Visible(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got := text.VisibleLine("a\nb\tc\x07"); got != "a<U+000A>b<U+0009>c<U+0007>" {
		t.Errorf("got %q", got)
	}
}

// FuzzVisible: what is shown holds nothing that a reader would not see, and JSON stays the same.
func FuzzVisible(f *testing.F) {
	f.Add("a\u202eb\U000e0041\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range text.Visible(s) {
			if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
				t.Errorf("%q is shown with %U", s, c)
			}
		}
		if !utf8.ValidString(s) {
			return
		}
		shown := text.VisibleJSON(string(text.CanonicalJSON(s)))
		var back string
		if err := json.Unmarshal([]byte(shown), &back); err != nil || back != s || strings.ContainsFunc(shown, unicode.IsControl) {
			t.Errorf("%q is shown as %s, which is %q: %v", s, shown, back, err)
		}
	})
}
