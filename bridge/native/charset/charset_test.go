package charset_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loom-bridge/loom-bridge/bridge/native/charset"
)

// Whatever is taken for text, and can be encoded, is the same bytes again, read at once
// or a byte at a time.
func FuzzDetect(f *testing.F) {
	for _, seed := range []string{"", "a", "grün", "\xff\xfea\x00", "\xfe\xff\x00a", "\xef\xbb\xbfa", "caf\xe9", "a\x00b\x00", "\xff\xfe\x00", "\xd0\xd2\xc9\xd7\xc5\xd4"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		e, isText := charset.Detect(content, true)
		if !isText {
			return
		}
		text, err := e.Decode(content)
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		again, err := e.Encode(text)
		if err != nil || !bytes.Equal(again, content) {
			t.Errorf("%s: %q became %q, %v", e.Name(), content, again, err)
		}
		slowly, err := io.ReadAll(e.Reader(iotest.OneByteReader(bytes.NewReader(content))))
		if err != nil || string(slowly) != text {
			t.Errorf("%s: read %q, %v, want %q", e.Name(), slowly, err, text)
		}
	})
}

func TestDetect(t *testing.T) {
	for name, tt := range map[string]struct {
		content string
		part    bool
		want    string // empty: not text
	}{
		"empty":                    {"", false, "utf-8"},
		"a character cut off":      {"gr\xc3", true, "utf-8"},
		"a character that ends so": {"gr\xc3", false, "windows-1252"},
		"NUL":                      {"a\x00b", false, ""},
		"a picture":                {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", false, ""},
		"a program":                {"\x7fELF\x02\x01\x01", false, "utf-8"},
		"half a unit":              {"\xff\xfe\x00", false, ""},
		"a lone surrogate":         {"\xff\xfe\x00\xd8a\x00", false, ""},
		"bytes 1253 does not have": {"A\x8d\xef\xbb", false, "iso-8859-1"},
		"UTF-16 of another script": {"\xff\xfe\x1f\x04\x40\x04", false, "utf-16"},
	} {
		e, isText := charset.Detect([]byte(tt.content), !tt.part)
		if isText != (tt.want != "") || isText && e.Name() != tt.want {
			t.Errorf("%s: %s, %v; want %q", name, e.Name(), isText, tt.want)
		}
	}
}

// Every name that is told is taken.
func TestNames(t *testing.T) {
	for _, name := range []string{"utf-8", "UTF_8_sig", "utf-16", "utf-16le", "utf-16be", "latin-1", "windows-1250", "koi8-r", "shift_jis", "gb18030", "euc-kr", "big5"} {
		e, err := charset.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := charset.Named(e.Name()); err != nil || again.Name() != e.Name() {
			t.Errorf("%s is %s, which is %s, %v", name, e.Name(), again.Name(), err)
		}
	}
	for _, name := range []string{"", "klingon", "replacement", "x-user-defined", strings.Repeat("x", 1000)} {
		if _, err := charset.Named(name); !errors.Is(err, charset.ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
