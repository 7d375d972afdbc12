package text_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// P01
func TestHumanSize(t *testing.T) {
	const kb, mb = 1 << 10, 1 << 20
	for n, want := range map[int64]string{
		-1: "0 bytes", 0: "0 bytes", 1: "1 bytes", 1023: "1023 bytes", 1024: "1KB", 1229: "1.2KB",
		1075: "1KB", 1076: "1.1KB", 5120: "5KB", 51200: "50KB", 10*kb - 1: "10KB", 10 * kb: "10KB",
		10*kb + 511: "10KB", 10*kb + 512: "11KB", mb - 1: "1024KB", mb: "1MB", mb + mb/2: "1.5MB",
		10*mb + mb/2: "11MB", 1 << 30: "1024MB",
	} {
		if got := text.HumanSize(n); got != want {
			t.Errorf("HumanSize(%d) = %q, want %q", n, got, want)
		}
	}
	if got := text.HumanSize(math.MaxInt64); got != "8796093022208MB" {
		t.Errorf("the largest size is %q", got)
	}
}

// P01
func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " ": "", "a": "a", "a\n\n\tb": "a b", "  a b  ": "a b", "a\u2028b\u0085c\u00a0d": "a b c d",
		"a\r\nb": "a b", "a\x1b[0m\x00b": "a [0m b", "é\nß": "é ß",
		"a\u202egpj.exe": "agpj.exe", "\u2066a\u2069 \u200f \u061cb\u200e": "a b", "\u202a": "",
		"pears\U000e0020\U000e0069\U000e0067\U000e007f and": "pears and", "\U000e0001": "",
		"a\u200bb\ufeff\u00adc\U000e0100": "abc", "\u0915\u094d\u200d\u0937 \U0001f469\u200d\U0001f52c \u2764\ufe0f": "\u0915\u094d\u200d\u0937 \U0001f469\u200d\U0001f52c \u2764\ufe0f",
	} {
		if got := text.OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

// P01
func TestCutCharsKeepsCodePointsWhole(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want string
		cut  bool
	}{
		{"", 0, "", false},
		{"abc", 3, "abc", false},
		{"abc", 2, "ab", true},
		{"äöü", 2, "äö", true},
		{"a", 0, "", true},
		{"😀😀", 1, "😀", true},
	}
	for _, tt := range tests {
		if got, cut := text.HeadChars(tt.in, tt.n); got != tt.want || cut != tt.cut {
			t.Errorf("CutChars(%q, %d) = %q, %t, want %q, %t", tt.in, tt.n, got, cut, tt.want, tt.cut)
		}
	}
}

// P01
func TestCanonicalJSON(t *testing.T) {
	tests := []struct {
		in, compact, spaced string
	}{
		{`null`, `null`, `null`},
		{`{"b":[1,true,null],"a":{}}`, `{"a":{},"b":[1,true,null]}`, `{"a": {}, "b": [1, true, null]}`},
		{`"<a href='x'>&amp; é \u2028 \u0001 \n \" \\ \/"`, "\"<a href='x'>&amp; é \u2028 \\u0001 \\n \\\" \\\\ /\"", ""},
		{`{"\ud83d\ude00":1,"\uffff":2,"z":3}`, "{\"z\":3,\"\uffff\":2,\"😀\":1}", ""},
		{`9007199254740993`, `9007199254740993`, ""},
		{`[1e3,1.0,1.50,-0,0.1e1,-2.5E-1,100,1e21]`, `[1000,1,1.5,0,1,-0.25,100,1000000000000000000000]`, ""},
		{`[1e399,1e400]`, `[1` + strings.Repeat("0", 399) + `,1e400]`, ""},
		{`[1e-7,1e-30,123456789.5e-30]`, `[0.0000001,1e-30,1.234567895e-22]`, ""},
		{`[1e999999999999,10e1048575,1e1048577,0e99999999999999999999]`, `[null,1e1048576,null,0]`, ""},
	}
	for _, tt := range tests {
		decoded, err := text.DecodeJSON([]byte(tt.in))
		if err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		if got := string(text.CanonicalJSON(decoded)); got != tt.compact {
			t.Errorf("CanonicalJSON(%s)\n got %s\nwant %s", tt.in, got, tt.compact)
		}
		if got := string(text.CanonicalJSON(json.RawMessage(tt.in))); got != tt.compact {
			t.Errorf("CanonicalJSON of the text %s\n got %s\nwant %s", tt.in, got, tt.compact)
		}
		if got := string(text.SpacedJSON(decoded)); tt.spaced != "" && got != tt.spaced {
			t.Errorf("SpacedJSON(%s)\n got %s\nwant %s", tt.in, got, tt.spaced)
		}
	}
}

func TestCanonicalJSONOfWhatIsNoJSON(t *testing.T) {
	type pair struct{ A, B int }
	tests := []struct {
		in   any
		want string
	}{
		{math.NaN(), `null`},
		{math.Inf(-1), `null`},
		{json.Number("01"), `null`},
		{json.Number(""), `null`},
		{json.Number(`true`), `null`},
		{json.Number(` 1`), `null`},
		{"a\xffb", "\"a\uFFFDb\""},
		{map[string]any{"\xff": 1}, "{\"\uFFFD\":1}"},
		{func() {}, `null`},
		{pair{1, 2}, `{"A":1,"B":2}`},
		{[]string{"a"}, `["a"]`},
		{json.RawMessage(`{`), `null`},
		{1e300, `1` + strings.Repeat("0", 300)},
		{0.1, `0.1`},
	}
	for _, tt := range tests {
		if got := string(text.CanonicalJSON(tt.in)); got != tt.want {
			t.Errorf("CanonicalJSON(%v) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestCanonicalJSONOfDeepNestingEnds(t *testing.T) {
	var v any = []any{}
	for range 20000 {
		v = []any{v}
	}
	got := string(text.CanonicalJSON(v))
	if want := strings.Repeat("[", 10001) + "null" + strings.Repeat("]", 10001); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// FuzzCanonicalJSON: canonical text is JSON, means the same, and is its own
// canonical form.
func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,-0e5,"x\u0000"]}`, `1e-400`, `"\ud800"`, `[[],{}]`, `123456789012345678901234567890.5`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		if !json.Valid(s) {
			return
		}
		canonical := text.CanonicalJSON(json.RawMessage(s))
		if !json.Valid(canonical) {
			t.Fatalf("%q became %q", s, canonical)
		}
		if again := text.CanonicalJSON(json.RawMessage(canonical)); string(again) != string(canonical) {
			t.Fatalf("%q became %q, then %q", s, canonical, again)
		}
		spaced := text.SpacedJSON(json.RawMessage(s))
		if back := text.CanonicalJSON(json.RawMessage(spaced)); string(back) != string(canonical) {
			t.Fatalf("%q spaced is %q, which means %q", s, spaced, back)
		}
		var want, got float64
		if json.Unmarshal(s, &want) == nil && json.Unmarshal(canonical, &got) == nil && want != got {
			t.Fatalf("%q became %q", s, canonical)
		}
	})
}

func TestShapeOf(t *testing.T) {
	for given, want := range map[string]text.Shape{
		``:                       {Bytes: 0, Values: 1},
		`"a[{,"`:                 {Bytes: 6, Values: 1},
		`{"a":[1,"\"]"],"b":{}}`: {Bytes: 22, Containers: 3, Depth: 2, Values: 6},
		`[1] [[`:                 {Bytes: 3, Containers: 1, Depth: 1, Values: 2},
		`]}[[`:                   {Bytes: 4, Containers: 2, Depth: 0, Values: 3},
	} {
		if got := text.ShapeOf(given); got != want {
			t.Errorf("%s: %+v, want %+v", given, got, want)
		}
	}
}
