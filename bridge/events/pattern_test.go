package events_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/events"
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
		{strings.Repeat("x", events.MaxTopicBytes-2) + ".*", true, false},
		{strings.Repeat("x", events.MaxTopicBytes-1) + ".*", false, false},
		{"", false, false},
		{"a.", false, false},
		{"a.**.b", false, false},
		{"a*", false, false},
		{"***", false, false},
		{"a.*b", false, false},
		{"a\x00.*", false, false},
	} {
		p, err := events.ParsePattern(tt.text)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, events.ErrInvalid) {
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
		p := events.LegacyPattern(tt.pattern)
		if !tt.legacy {
			p = native(t, tt.pattern).Pattern
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
