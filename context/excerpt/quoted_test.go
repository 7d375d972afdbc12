package excerpt_test

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
)

// The letter of an escape belongs to no name, in JSON as in source code; outside of
// quotes a backslash is a backslash.
func TestEscapes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"JSON", `{"v": "a\nsrc/app/main.py\tsrc/app/db.py"}`, `{"v": "a\|src/app/main.py\|src/app/db.py"}`},
		{"a code point", `{"v": "\u00e9tat"}`, `{"v": "\|tat"}`},
		{"an escaped backslash", `{"v": "C:\\new\\table"}`, `{"v": "C:\\new\\table"}`},
		{"no quotes", `C:\new\table`, `C:\new\table`},
		{"another line has quotes", "\"a\"\nC:\\new", "\"a\"\nC:\\new"},
		{"the quotes come later", `C:\new "b\nc"`, `C:\new "b\|c"`},
		{"no escape", `"\dir \x"`, `"\dir \x"`},
		{"cut off", `"\u00`, `"\u00`},
	}
	for _, tt := range tests {
		var quoted excerpt.Quoted
		var got strings.Builder
		for i := 0; i < len(tt.text); {
			if n := quoted.Escaped(tt.text, i); n > 0 {
				got.WriteByte('|')
				i += n
				continue
			}
			got.WriteByte(tt.text[i])
			i++
		}
		if got.String() != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got.String(), tt.want)
		}
	}
	if got := excerpt.QuotedPart(`{"a": "bc\nd"}`, 8, 12); got != `"c\nd` {
		t.Errorf("a part within quotes: %s", got)
	}
	if got := excerpt.QuotedPart("\"a\"\nbc", 5, 6); got != "c" {
		t.Errorf("a part outside of quotes: %s", got)
	}
}
