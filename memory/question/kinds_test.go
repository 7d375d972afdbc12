package question

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// kinds names flags.
func kinds(f segment.Flags) string {
	var names []string
	for _, kind := range []struct {
		flag segment.Flags
		name string
	}{{segment.FlagAsks, "asks"}, {segment.FlagTellsTime, "time"}, {segment.FlagTellsNumber, "number"}, {segment.FlagTellsName, "name"}, {segment.FlagTellsChange, "change"}} {
		if f&kind.flag != 0 {
			names = append(names, kind.name)
		}
	}
	return strings.Join(names, " ")
}

func TestToldBy(t *testing.T) {
	for text, want := range map[string]string{
		"Where are you going? ":                  "asks",
		"Where to？":                              "asks",
		"Look at this?\na photo of a dog":        "asks",
		"A dog.\nIs it?":                         "asks",
		"A dog. Is it? No.":                      "",
		"I went there yesterday":                 "time",
		"We met in May":                          "time name",
		"May I?":                                 "asks",
		"we may go":                              "",
		"It was in 1999":                         "time number",
		"Room 1450":                              "number",
		"last summer was hot":                    "time",
		"next school year":                       "time",
		"this school year":                       "",
		"a few days of rain":                     "time number",
		"two of the weeks":                       "number",
		"three of weeks":                         "time number",
		"I met Caroline there":                   "name",
		"Caroline was there. Melanie: she, too!": "",
		"We saw \"Dune\"":                        "name",
		"I have 2 cats":                          "number",
		"we moved":                               "change",
		"so now it is new":                       "change",
		"now":                                    "",
		"":                                       "",
		"...":                                    "",
		"\xff\xfe":                               "",
	} {
		if got := kinds(Tells(text)); got != want {
			t.Errorf("%q tells %q, want %q", text, got, want)
		}
	}
}

func TestAskedFor(t *testing.T) {
	for query, want := range map[string]string{
		"When did she go?":              "time",
		"She wondered when were they":   "time",
		"In what year was it?":          "time",
		"Which month?":                  "time",
		"How long did it take?":         "time number",
		"How many dogs?":                "number",
		"How is she?":                   "",
		"Who came?":                     "name",
		"Where is it?":                  "name",
		"What book did she read?":       "name",
		"Which two cities are these?":   "name",
		"What are her favourite books?": "",
		"What did she paint?":           "",
		"bitcoin price":                 "",
		"":                              "",
	} {
		if got := kinds(asks(cut(nil, query))); got != want {
			t.Errorf("%q asks for %q, want %q", query, got, want)
		}
	}
}

func TestAsksForSeveral(t *testing.T) {
	for query, want := range map[string]bool{
		"What books did she read?":        true,
		"Which of the hobbies":            false,
		"What outdoor sports does he do?": true,
		"How many dogs are there?":        true,
		"What do both like?":              true,
		"What did the boys paint?":        false,
		"What glass is it?":               false,
		"What bus is it?":                 false,
		"books":                           false,
		"":                                false,
	} {
		if got := asksForSeveral(cut(nil, query)); got != want {
			t.Errorf("%q: %v", query, got)
		}
	}
}

func TestAsksForCurrent(t *testing.T) {
	for query, want := range map[string]bool{
		"What is her address?":         true,
		"Where does Ann work?":         true,
		"Where did Ann work?":          false,
		"What does she say that I did": false,
		"How long has it been?":        false,
		"her address":                  false,
	} {
		if got := asksForCurrent(cut(nil, query)); got != want {
			t.Errorf("%q: %v", query, got)
		}
	}
}

func TestAsksForOwned(t *testing.T) {
	for query, want := range map[string]bool{
		"What is Ann's address?":     true,
		"What is Ann’s address?":     true,
		"Where do my tomatoes grow?": true,
		"What's new?":                false,
		"Where does Ann work?":       false,
		"":                           false,
	} {
		if got := asksForOwned(cut(nil, query)); got != want {
			t.Errorf("%q: %v", query, got)
		}
	}
}
