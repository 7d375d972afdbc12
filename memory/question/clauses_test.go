package question

import (
	"slices"
	"strings"
	"testing"
)

func TestClauses(t *testing.T) {
	for text, want := range map[string][]string{
		"":                      nil,
		"Where do I park?":      nil,
		"Yes. No. Maybe, maybe": nil,
		"It rains, and it is cold. Stop, what I really want to ask is where I park.": {"what I really want to ask", "Stop", "and it is cold"},
		"my question is: who is my dentist?":                                         nil,
		"Well, my question is: who is my dentist?":                                   {"my question is"},
		"下雨了，停一下，我真正想问的是车停在哪里":                                                       {"我真正想问的是", "停一下"},
		"Müzeyi bırakalım, asıl sorum kedimin adı ne?":                               {"asıl sorum"},
		"그만하고, 알고 싶은 건 치과 의사가 누구인지야":                                                 {"알고 싶은 건"},
		"下雨了，好的":                                               nil,
		"下雨了，我想问的是，车停在哪里":                                      {"我想问的是"},
		"one, two, three, four, five, six, seven, eight, nine": {"six"},
		"well-known it's 3.5":                                  nil,
		"\xff, \xff\xfe, 下":                                    nil,
	} {
		var got []string
		for _, c := range Clauses(text) {
			if got = append(got, c.Head); !strings.HasPrefix(text[c.At:], c.Head) {
				t.Errorf("%q: %q is not at %d", text, c.Head, c.At)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}
