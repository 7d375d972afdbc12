package compress

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is read of valid JSON is what encoding/json reads.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, ` { "a" : [1, 2, {"b":null}] , "c":"}]\",\\" } `, `[ "x" , -1e9,true,[[]],{"":{}} ]`, `"text"`, `{"a":1,"a":2}`,
		"{\"\\u0061\\n\":\n1\t}", `[{"a":"\ud83d\ude00"}]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		var array []json.RawMessage
		var object map[string]json.RawMessage
		isArray, isObject := json.Unmarshal([]byte(text), &array) == nil, json.Unmarshal([]byte(text), &object) == nil
		n := 0
		for key, value := range members(text) {
			if !json.Valid([]byte(value)) {
				t.Fatalf("%q is no value", value)
			}
			if isArray && value != strings.Trim(string(array[n]), jsonSpace) {
				t.Fatalf("element %d: got %q, want %q", n, value, array[n])
			}
			if name, ok := textOf(key); isObject && utf8.ValidString(key) && (!ok || object[name] == nil) {
				t.Fatalf("there is no %q", key)
			}
			n++
		}
		if isArray && n != len(array) || isObject && n < len(object) || !isArray && !isObject && n > 0 || n != size(text) {
			t.Fatalf("%d members; size says %d", n, size(text))
		}
	})
}

func TestOneLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"", 5, ""},
		{" \n\t ", 5, ""},
		{" a\n\n b\u2028c ", 9, "a b c"},
		{"abcde", 5, "abcde"},
		{"abcdef", 5, "abcd…"},
		{"ab      cdef", 5, "ab c…"},
		{"abcde   ", 5, "abcde"},
		{"a\x00\x1b[1mb", 9, "a [1mb"},
		{"天地玄黄", 3, "天地…"},
		{"a", 1, "a"},
		{"ab", 1, "…"},
	} {
		if got := oneLine(tt.text, tt.n); got != tt.want {
			t.Errorf("%q to %d: got %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}
