package step_test

import (
	"encoding/json"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
)

func TestHowToReadOn(t *testing.T) {
	number := func(n string) json.Number { return json.Number(n) }
	for _, tt := range []struct {
		name      string
		args      map[string]any
		beginning string
		ended     bool
		want      string
	}{
		{"whole lines", nil, "one\ntwo", true, "offset 3"},
		{"within a line", nil, "one\ntw", false, "offset 2"},
		{"within the first line", nil, "one", false, "offset_bytes 3"},
		{"from a line", map[string]any{"offset": number("10")}, "ten\neleven", true, "offset 12"},
		{"by the other name", map[string]any{"start_line": number("10")}, "ten", true, "offset 11"},
		{"within a later line", map[string]any{"offset": number("10")}, "te", false, ""},
		{"from a byte", map[string]any{"offset_bytes": number("100")}, "é\n", true, "offset_bytes 103"},
		{"first bytes", map[string]any{"limit_bytes": number("100")}, "abc", false, "offset_bytes 3"},
		{"odd arguments", map[string]any{"offset": "x", "start_line": number("-5")}, "one", true, "offset 2"},
		{"odd bytes", map[string]any{"offset_bytes": number("-5")}, "one", true, "offset_bytes 3"},
	} {
		if got := step.PlaceOf(tt.args).Next(tt.beginning, tt.ended); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestBeginning(t *testing.T) {
	s := step.Step{Inline: "a\nb"}
	if got := s.Beginning(); got != 3 {
		t.Errorf("of all: %d", got)
	}
	s.Inline = "a\nb\n[… 5 bytes left out; full text: see reference]\nc"
	if got := s.Beginning(); got != 3 {
		t.Errorf("before what is left out: %d", got)
	}
}
