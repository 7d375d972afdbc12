package pattern_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
)

func TestParsePattern(t *testing.T) {
	for _, tt := range []struct {
		text      string
		ok, exact bool
	}{
		{"a.b", true, true},
		{"*", true, false},
		{"**", true, false},
		{"a.*.b", true, false},
		{"*.*.**", true, false},
		{strings.Repeat("x", pattern.MaxTopicBytes-2) + ".*", true, false},
		{strings.Repeat("x", pattern.MaxTopicBytes-1) + ".*", false, false},
		{"", false, false},
		{"a.", false, false},
		{"a.**.b", false, false},
		{"a*", false, false},
		{"***", false, false},
		{"a.*b", false, false},
		{"a\x00.*", false, false},
	} {
		p, err := pattern.Parse(tt.text)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, pattern.ErrInvalid) {
			t.Errorf("%q: got %v, want ok %v", tt.text, err, tt.ok)
		}
		if topic, exact := p.Exact(); err == nil && (exact != tt.exact || topic != tt.text || p.String() != tt.text) {
			t.Errorf("%q: exact %v, %q, %q", tt.text, exact, topic, p)
		}
	}
}

// TestConformance73WildcardMatching: `a.*` matches sub-topics at any depth, no
// other prefix; other stars are literal.
func TestConformance73WildcardMatching(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		legacy  bool
		yes, no []string
	}{
		{"a.*", true, []string{"a.b", "a.b.c", "a.", "a.*"}, []string{"a", "ab.c", "b.a.c", ""}},
		{"a.b.*", true, []string{"a.b.c", "a.b.c.d"}, []string{"a.b", "a.bc", "a.c.b"}},
		{".*", true, []string{".", ".x", ".x.y"}, []string{"", "x"}},
		{"*.*", true, []string{"*.x"}, []string{"a.x"}},
		{"*", true, []string{"*"}, []string{"a", ""}},
		{"**", true, []string{"**"}, []string{"a", "a.b"}},
		{"#", true, []string{"#"}, []string{"a"}},
		{"a.*.b", true, []string{"a.*.b"}, []string{"a.x.b"}},
		{"", true, []string{""}, []string{"a"}},
		{"a.*", false, []string{"a.b"}, []string{"a", "a.b.c", "b.c"}},
		{"a.**", false, []string{"a.b", "a.b.c"}, []string{"a", "ab.c"}},
		{"*.b.**", false, []string{"a.b.c", "x.b.c.d"}, []string{"a.b", "a.c.b"}},
		{"*", false, []string{"a", "b"}, []string{"a.b"}},
		{"**", false, []string{"a", "a.b"}, nil},
		{"a.b", false, []string{"a.b"}, []string{"a", "a.b.c", "a.*"}},
	} {
		p := pattern.Legacy(tt.pattern)
		if !tt.legacy {
			var err error
			if p, err = pattern.Parse(tt.pattern); err != nil {
				t.Fatal(err)
			}
		}
		for _, topic := range tt.yes {
			if !p.Match(topic) {
				t.Errorf("%q (legacy %v) does not match %q", tt.pattern, tt.legacy, topic)
			}
		}
		for _, topic := range tt.no {
			if p.Match(topic) {
				t.Errorf("%q (legacy %v) matches %q", tt.pattern, tt.legacy, topic)
			}
		}
	}
}

func TestCheckTopic(t *testing.T) {
	for _, tt := range []struct {
		topic string
		ok    bool
	}{
		{"a", true},
		{"agent.spawned", true},
		{"Ü.ö-1_2", true},
		{strings.Repeat("x", pattern.MaxTopicBytes-1), true},
		{strings.Repeat("x", pattern.MaxTopicBytes), true},
		{strings.Repeat("x", pattern.MaxTopicBytes+1), false},
		{"", false},
		{".", false},
		{".a", false},
		{"a.", false},
		{"a..b", false},
		{"a.*", false},
		{"*", false},
		{"a\x00", false},
		{"a\nb", false},
		{"a\u0085b", false},
		{"a\xff", false},
	} {
		if err := pattern.CheckTopic(tt.topic); (err == nil) != tt.ok || err != nil && !errors.Is(err, pattern.ErrInvalid) {
			t.Errorf("%q: got %v, want ok %v", tt.topic, err, tt.ok)
		}
	}
}
