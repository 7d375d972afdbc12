package text_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// oracle decodes one value with encoding/json alone.
func oracle(text []byte) (any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, false
	}
	_, err := decoder.Token()
	return v, err == io.EOF
}

func sameDecoded(t *testing.T, s []byte) {
	t.Helper()
	want, valid := oracle(s)
	got, err := text.DecodeJSON(s)
	if (err == nil) != valid {
		t.Fatalf("%q: %v, valid %t", s, err, valid)
	}
	if valid && !reflect.DeepEqual(want, got) && !bytes.Equal(text.CanonicalJSON(want), text.CanonicalJSON(got)) {
		t.Fatalf("%q: got %v, want %v", s, got, want)
	}
}

func TestDecodeJSON(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	deep := nested(200)
	for _, s := range []string{
		`null`, ` true `, `false`, `{}`, `[]`, `""`, `-0`, `0`, `01`, `1.`, `.5`, `-`, `1e5`, `1E+400`, `9007199254740993`, `nul`, `nulll`, `truefalse`,
		`{"a":1,"a":2}`, `{"a":}`, `{"a" :1 ,"b": [1,2 , {"c":null}]}`, `{,}`, `[1,]`, `[,1]`, `{"a":1`, `[`, `{"a"`, `{1:2}`, `1 2`, `{} x`,
		`"a\nb\t\"\\\/\r\b\f"`, `"\u00e9\u4e2d\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`, `"\u12"`, `"\u12g4"`, `"\U0041"`, `"\x41"`, `"\`, `"abc`,
		"\"a\nb\"", "\"\x00\"", "\"\xff\"", "\"é😀\"", "\"\x7f\"", `"\u2028"`, `"\u001F\u00FF"`, `"\u:000"`, "\"\\u\x10000\"", deep, nested(text.MaxDepth), nested(10_000), nested(10_001), `"\ud83dx\ude00\ud83d\n\ud83d\ud83d\ude00\ud83d\u00e9"`, "", " ", "\ufeff1",
	} {
		sameDecoded(t, []byte(s))
	}
}

// A text of more lists and objects than are taken apart is the same JSON as before,
// however it is read; what is wrong with it is noticed.
func TestDecodeJSONOfManyContainers(t *testing.T) {
	many := func(n int, item string) string {
		return "[" + strings.Repeat(item+", ", n) + `"end"]`
	}
	for name, s := range map[string]string{
		"as many as are taken apart": many(text.MaxContainers-1, `{}`),
		"more":                       many(text.MaxContainers+500, `{"b": 1.50, "a": ["{]\"", {}]}`),
		"behind a deep one":          `{"d": ` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `, "z": ` + many(text.MaxContainers+500, `{"b": 1, "a": {}}`) + `, "a": 1}`,
		"a long one is left":         `{"z": ` + many(text.MaxContainers, `{}`) + `, "b": {"k": ` + many(1000, `{"b": 1, "a": 2}`) + `}, "a": 1}`,
	} {
		value, err := text.DecodeJSON([]byte(s))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, _ := oracle([]byte(s))
		if got, want := text.CanonicalJSON(value), text.CanonicalJSON(want); !bytes.Equal(got, want) {
			t.Errorf("%s: written again it is %.200s, not %.200s", name, got, want)
		}
	}
	// One that is left as it stands and is itself too much: the same value, its keys in
	// their order.
	s := []byte(`[` + many(text.MaxContainers, `{}`) + `, ` + many(text.MaxContainers, `{"b": 1, "a": 2}`) + `]`)
	value, err := text.DecodeJSON(s)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := oracle(s)
	if got, _ := oracle(text.CanonicalJSON(value)); !reflect.DeepEqual(got, want) {
		t.Error("written again it is another value")
	}
	for _, wrong := range []string{`{"a" 1}`, `[1,]`, `{`, `[}`, `["a`, strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)} {
		sameDecoded(t, []byte(many(text.MaxContainers, `{}`)+wrong))
		sameDecoded(t, []byte(`[`+many(text.MaxContainers, `{}`)+`,`+wrong+`]`))
	}
}

// Eight bytes are looked at at once: what ends a text is found wherever it stands among them.
func TestDecodeJSONOfLongTexts(t *testing.T) {
	for _, filler := range []string{"a", "\x7f", "!", "#", "[", "]", "é", "\u0080", "😀", "\xff", " "} {
		for _, special := range []string{"", `\"`, `\\`, `\\\"`, `\n`, `\u00e9`, "\x00", "\x1f", "\n", `"`, `\`, "\xff", "\xe9\x80"} {
			for before := range 10 {
				s := `"` + strings.Repeat(filler, before) + special + strings.Repeat(filler, 17) + special + `"`
				sameDecoded(t, []byte(s))
				sameDecoded(t, []byte(`{"k":`+s+`}`))
			}
		}
	}
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(`{"stdout":"a\nb\u00e9","exit_code":0,"list":[1,-2.5e3,null,true]}`))
	f.Add([]byte("\"\\ud83d\\ude00\xff\""))
	f.Fuzz(func(t *testing.T, text []byte) { sameDecoded(t, text) })
}

func BenchmarkDecodeJSON(b *testing.B) {
	var out strings.Builder
	for i := 0; out.Len() < 1<<20; i++ {
		fmt.Fprintf(&out, "src/file_%d.go:%d: \"name\"\twhat it does\n", i, i)
	}
	s, err := json.Marshal(map[string]any{"stdout": out.String(), "exit_code": 0})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		if _, err := text.DecodeJSON(s); err != nil {
			b.Fatal(err)
		}
	}
}
