package similar_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/similar"
)

// TestSame: texts that say the same, and texts that only look so.
func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"Anna lives in Berlin.", "anna lives  in berlin", true},
		{"Anna lives in Berlin.", "Note: Anna lives in Berlin!", true},
		{"Anna lives in Berlin.", "Remember that Anna lives in Berlin", true},
		{"Anna lives in Berlin.", "As I recall, Anna lives in Berlin.", true},
		{"It's the best café in town", "It is the best cafe\u0301 in town.", true},
		{"Ann doesn't like the tea", "Ann does not like the tea", true},
		{"She said that Bob is a baker", "She said Bob is baker", true},
		{"Bob is really a great baker", "Bob is a great baker", true},
		{"Anna moved in on May 3 2020", "anna moved in on may 3 2020", true},
		{"Anna met May in Berlin", "anna met may in berlin", false},
		{"ANNA LIVES IN BERLIN", "Anna lives in Berlin", true},
		{"Anna lives in Berlin", "Anna lives in Bern", false},
		{"Anna lives in Berlin", "Anna lives in Berlin?", false},
		{"Anna does live in Berlin", "Anna does not live in Berlin", false},
		{"Anna never was in Berlin", "Anna was in Berlin", false},
		{"Anna met Bob at home", "Bob met Anna at home", false},
		{"Bitcoin closed at 45,000", "Bitcoin closed at 45.000", false},
		{"Bitcoin closed at 45,000", "Bitcoin closed at 46,000", false},
		{"It was -5 degrees there", "It was 5 degrees there", false},
		{"It costs $5 at the shop", "It costs €5 at the shop", false},
		{"The flight is on May 3", "The flight is on May 4", false},
		{"Send it to the US office", "Send it to the us office", false},
		{"They polish the table at home", "They Polish the table at home", false},
		{"give the report to us today", "Give the report to US today", false},
		{"She has few friends in town", "She has a few friends in town", false},
		{"He has hepatitis a and a cold", "He has hepatitis and a cold", false},
		{"No, more coffee for Ann", "No more coffee for Ann", false},
		{"Anna said \"I am ill\" again", "Anna said I am ill again", false},
		{"He liked it very much 😀", "He liked it very much 😡", false},
		{"Anna likes tea with milk", "Anna liked tea with milk", false},
		{"Ich denke an dich heute", "Ich denke dich heute", false},
		{"5 - 3 is the score there", "5 3 is the score there", false},
		{"use the flag !important there", "use the flag important there", false},
	} {
		f, g := similar.Of(tt.a), similar.Of(tt.b)
		if got := f.Same(g); got != tt.same {
			t.Errorf("%q and %q: same %t", tt.a, tt.b, got)
		}
		if g.Same(f) != tt.same {
			t.Errorf("%q and %q: otherwise the other way round", tt.b, tt.a)
		}
		if tt.same && f.Sum() != g.Sum() {
			t.Errorf("%q and %q have other sums", tt.a, tt.b)
		}
	}
}

func TestTells(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "yes": false, "ok, thank you very much": false, "Sounds good to me!": false, "Berlin, Germany": false,
		"Ann likes tea": true, "The desk closes at 17:30": true,
	} {
		if got := similar.Of(text).Tells(); got != want {
			t.Errorf("%q tells: %t", text, got)
		}
	}
}

func TestFleeting(t *testing.T) {
	for text, want := range map[string]bool{
		"It is raining today": true, "She moved two weeks ago": true, "We met last Friday": true, "He left this morning": true,
		"The shop opens on Friday": false, "Ann likes tea": false, "Last orders are at ten": false,
	} {
		if got := similar.Of(text).Fleeting(); got != want {
			t.Errorf("%q is fleeting: %t", text, got)
		}
	}
}

func TestWithin(t *testing.T) {
	source := "Ann lives in Bern. She has two cats. Bob is a baker."
	for text, want := range map[string]bool{
		source: true, "Ann lives in Bern. She has two cats.": true, "She has two cats. Ann lives in Bern.": false,
		"Bob is a baker.": false, "Ann lives in Bern. She has three cats. Bob is a baker.": false, "": false,
		"lives in Bern. She has two cats. Bob is a baker.": false,
	} {
		if got := similar.Within(text, source); got != want {
			t.Errorf("%q is within: %t", text, got)
		}
	}
}

func TestSimilarity(t *testing.T) {
	if got := similar.Similarity("Ann likes tea", "ann likes TEA."); got != 1 {
		t.Errorf("got %v, want 1", got)
	}
	if got := similar.Similarity("Ann likes tea", "Bob drinks beer"); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
	if got := similar.Similarity("a b c", "a b d"); got != 3.0/7 {
		t.Errorf("got %v, want 3/7", got)
	}
}

// FuzzForm: a form is equal to itself and never larger than its text by much.
func FuzzForm(f *testing.F) {
	f.Add("It's the best café, isn't it? -5 !x \xff", "Note: a")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := similar.Of(a), similar.Of(b)
		if !x.Same(x) {
			t.Errorf("%q is not the same as itself", a)
		}
		if x.Same(y) != y.Same(x) {
			t.Errorf("%q and %q: same one way only", a, b)
		}
		if x.Same(y) && x.Sum() != y.Sum() {
			t.Errorf("%q and %q: same with other sums", a, b)
		}
		if s := similar.Similarity(a, b); s < 0 || s > 1 {
			t.Errorf("similarity %v", s)
		}
	})
}
