package step_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
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

func sameDecoded(t *testing.T, text []byte) {
	t.Helper()
	want, valid := oracle(text)
	got, err := step.DecodeJSON(text)
	if (err == nil) != valid {
		t.Fatalf("%q: %v, valid %t", text, err, valid)
	}
	if valid && !reflect.DeepEqual(want, got) {
		t.Fatalf("%q: got %v, want %v", text, got, want)
	}
}

func TestDecodeJSON(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, text := range []string{
		`null`, ` true `, `false`, `{}`, `[]`, `""`, `-0`, `0`, `01`, `1.`, `.5`, `-`, `1e5`, `1E+400`, `9007199254740993`, `nul`, `nulll`, `truefalse`,
		`{"a":1,"a":2}`, `{"a":}`, `{"a" :1 ,"b": [1,2 , {"c":null}]}`, `{,}`, `[1,]`, `[,1]`, `{"a":1`, `[`, `{"a"`, `{1:2}`, `1 2`, `{} x`,
		`"a\nb\t\"\\\/\r\b\f"`, `"\u00e9\u4e2d\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`, `"\u12"`, `"\u12g4"`, `"\U0041"`, `"\x41"`, `"\`, `"abc`,
		"\"a\nb\"", "\"\x00\"", "\"\xff\"", "\"é😀\"", "\"\x7f\"", `"\u2028"`, `"\u001F\u00FF"`, `"\u:000"`, "\"\\u\x10000\"", deep, "", " ", "\ufeff1",
	} {
		sameDecoded(t, []byte(text))
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
	text, err := json.Marshal(map[string]any{"stdout": out.String(), "exit_code": 0})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := step.DecodeJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}
