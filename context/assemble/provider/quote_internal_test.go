package provider

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzQuote compares quote with the library's encoder, which it stands in for.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{
		"", "plain", strings.Repeat("a line of words\n", 9), "\x00\x1f\x20\x7f\b\f\n\r\t\"\\/<>&",
		"é→…👍\u2028\u2029\ufffd", "\xff\xc3\xe2\x82 \xf0\x9f", "1234567\"", "12345678\\", strings.Repeat("\x80", 9),
	} {
		for i := range 9 { // wherever it begins in a word
			f.Add(strings.Repeat("x", i) + text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, want bytes.Buffer
		quote(&got, text)
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(text); err != nil {
			t.Fatal(err)
		}
		if got.String()+"\n" != want.String() {
			t.Fatalf("%q:\n got %s\nwant %s", text, got.String(), want.String())
		}
	})
}

// Each byte is plain in a word exactly if it is by itself.
func TestPlainPrefix(t *testing.T) {
	for b := range 256 {
		for at := range 8 {
			text := []byte("aZ09~ ][")
			text[at] = byte(b)
			want := 8
			if !plainByte(byte(b)) {
				want = at
			}
			if got := plainPrefix(string(text)); got != want {
				t.Fatalf("byte %#x at %d: got %d, want %d", b, at, got, want)
			}
		}
	}
}

func BenchmarkQuote(b *testing.B) {
	text := strings.Repeat("src/some/file.py:120: the of and dibapo kutuzi that is was for it\n", 1000)
	var out bytes.Buffer
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		out.Reset()
		quote(&out, text)
	}
}
