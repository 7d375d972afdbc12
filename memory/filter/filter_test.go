package filter

import (
	"errors"
	"strings"
	"testing"
)

func TestFilterRefusals(t *testing.T) {
	for filter, want := range map[string]string{
		`colour = "red"`:                    `0 field "colour" is unknown; served are id,`,
		`kind:"a"`:                          "kind is compared with = != < <= > >= and :*",
		`tags = "a"`:                        "tags is compared with :",
		`tags != "a"`:                       "tags is compared with :",
		`id < "a"`:                          "id is compared with = != and :*",
		`origin > "web"`:                    "origin is compared with",
		`pinned > true`:                     "pinned is compared with = != and :*",
		`kind = 5`:                          "7 kind takes a text in quotes",
		`kind = true`:                       "kind takes a text in quotes",
		`tags:"a" AND tags:5`:               "18 tags takes a text in quotes",
		`kind.x = "a"`:                      "kind has no parts",
		`metadata = "a"`:                    "metadata needs a path",
		`metadata:5`:                        "metadata needs a path",
		`metadata.x = a.b`:                  "metadata takes a text in quotes",
		`metadata.x = duration("1s")`:       "metadata takes a text in quotes",
		`metadata.x = timestamp(5)`:         "metadata takes a text in quotes",
		`metadata.x = *`:                    "metadata is asked for with metadata.x:*",
		`metadata.x < true`:                 "no order of true and false",
		`origin = "robot"`:                  "9 origin is one of user, agent, tool, web",
		`id = ""`:                           "id can't be empty",
		`importance > "high"`:               "importance takes a number",
		`tier = true`:                       "tier takes a number",
		`pinned = 1`:                        "pinned takes true or false",
		`pinned = "true"`:                   "pinned takes true or false",
		`event_time > 5`:                    "event_time takes a time in quotes",
		`event_time > "yesterday"`:          "event_time takes a time in quotes",
		`event_time > "2026-02-30"`:         "event_time takes a time in quotes",
		`create_time:"2026"`:                "create_time is compared with",
		`kind`:                              "a condition needs a field",
		`pinned AND kind = "a"`:             "0 a condition needs a field",
		`"kind" = "a"`:                      "a condition begins with a field",
		`5 = "a"`:                           "a condition begins with a field",
		`near("a", "b")`:                    "function near is not served",
		`kind = "a" b`:                      "11 a condition needs a field, an operator such as = or :, and a value; a text of several words stands in quotes",
		`deploy failed`:                     "words to look for belong into the query",
		`text < "a"`:                        "text is compared with = != and :",
		`version = "1"`:                     "version takes a number",
		`update_time = 5`:                   "update_time takes a time in quotes",
		`superseded_by:"a"`:                 "superseded_by is compared with",
		`origin = "u*"`:                     "9 origin is one of user, agent, tool, web",
		`kind < ("a" OR "b")`:               "several values in parentheses are served with = and : only",
		`kind = ("a" OR (kind = "b"))`:      "kind takes a text in quotes",
		`kind = "a`:                         "does not parse: unterminated string; a filter is made of",
		`kind = `:                           "does not parse",
		`kind = "a" AND`:                    "does not parse",
		`((kind = "a")`:                     "does not parse",
		`metadata.n = 1e5`:                  "does not parse",
		`metadata.n = 99999999999999999999`: "does not parse",
		"kind = \"\xff\"":                   "does not parse: invalid UTF-8",
		strings.Repeat("(", 4000):           "does not parse",
		strings.Repeat("a(", 2000):          "does not parse",
		strings.Repeat(" ", MaxBytes) + "x": "has 4097 bytes, more than 4096",
		strings.Repeat(`kind = a OR `, MaxConditions) + `kind = a`:                         "has more than 64 conditions",
		`kind = (` + strings.Repeat(`a OR `, MaxConditions) + `a)`:                         "has more than 64 conditions",
		strings.Repeat("NOT (", MaxDepth+1) + "kind = a" + strings.Repeat(")", MaxDepth+1): "nests deeper than 32 levels",
	} {
		_, err := Parse(filter)
		var wrong *Error
		if !errors.As(err, &wrong) || !errors.Is(err, ErrInvalid) {
			t.Errorf("filter %.60s: got %v", filter, err)
			continue
		}
		at, problem, ok := strings.Cut(want, " ")
		if !ok || strings.Trim(at, "0123456789") != "" {
			problem = want
		} else if got := strings.TrimPrefix(err.Error(), "memory: filter at byte "); !strings.HasPrefix(got, at+":") {
			t.Errorf("filter %.60s: got %v, want byte %s", filter, err, at)
		}
		if !strings.Contains(wrong.Problem, problem) {
			t.Errorf("filter %.60s: got %v, want %s", filter, err, problem)
		}
		if len(err.Error()) > 400 || wrong.Offset < 0 || wrong.Offset > len(filter) {
			t.Errorf("filter %.60s: offset %d, message of %d bytes", filter, wrong.Offset, len(err.Error()))
		}
	}
}

func TestFilterAtItsLimits(t *testing.T) {
	for _, filter := range []string{
		"", "  ",
		strings.Repeat(`kind = a AND `, MaxConditions-1) + `kind = a`,
		strings.Repeat("NOT (", MaxDepth) + "kind = a" + strings.Repeat(")", MaxDepth),
		strings.Repeat("(", 500) + "kind = a" + strings.Repeat(")", 500),
	} {
		if _, err := Parse(filter); err != nil {
			t.Errorf("filter %.60s: %v", filter, err)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`kind = "note" AND (tags:"x" OR -metadata.n >= 0x5)`, `NOT metadata."odd key".x:*`, `event_time <= "2026-03"`,
		`metadata.n = -.5`, `tags:(a OR b) AND pinned = true`, `metadata:x`, ` create_time > timestamp("2026-03-01T00:00:00+01:00")`, `a(b(c`, `kind = *`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Parse(text)
		var wrong *Error
		if err != nil && (!errors.As(err, &wrong) || wrong.Offset < 0 || wrong.Offset > len(text)) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
