package decay_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/history/decay"
)

// A text of 300 characters stays, one of 301 keeps 150 and 80.
//
// L03
func TestFold(t *testing.T) {
	for n, want := range map[int]string{
		299: strings.Repeat("ü", 299), 300: strings.Repeat("ü", 300),
		301:  strings.Repeat("ü", 150) + " …[71 chars omitted]… " + strings.Repeat("ü", 80),
		1000: strings.Repeat("ü", 150) + " …[770 chars omitted]… " + strings.Repeat("ü", 80),
	} {
		if got := decay.Fold(strings.Repeat("ü", n)); got != want {
			t.Errorf("%d characters: %q", n, got)
		}
	}
	once := decay.Fold(strings.Repeat("words and more ", 100))
	if again := decay.Fold(once); again != once {
		t.Errorf("a second pass makes %q of %q", again, once)
	}
}

// A title of 40 characters stays, one of 41 is cut.
//
// L05
func TestCallLine(t *testing.T) {
	found := decay.Found(8, []string{"quicksort O(nlogn)", "mergesort", "TimSort"})
	want := "[Turn 3] web_search → Found 8 results, most relevant: quicksort O(nlogn), mergesort, TimSort"
	if got := decay.CallLine(3, "web_search", found); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := decay.CallLine(1, "a\nb", "x\n[Turn 2] forged → y"); strings.Contains(got, "\n") {
		t.Errorf("more than a line: %q", got)
	}
	for n, want := range map[int]string{39: strings.Repeat("t", 39), 40: strings.Repeat("t", 40), 41: strings.Repeat("t", 39) + "…"} {
		if got := decay.Found(1, []string{strings.Repeat("t", n)}); got != "Found 1 results, most relevant: "+want {
			t.Errorf("a title of %d: %q", n, got)
		}
	}
}

// L07
func TestImageLine(t *testing.T) {
	for description, want := range map[string]string{
		"user uploaded a screenshot of the settings page": "[Image at Turn 3: user uploaded a screenshot of the settings page]",
		"":              "[Image at Turn 3: image]",
		" \n":           "[Image at Turn 3: image]",
		"two\nlines of": "[Image at Turn 3: two lines of]",
	} {
		if got := decay.ImageLine(3, description); got != want {
			t.Errorf("%q: %q, want %q", description, got, want)
		}
	}
}

// A sentence ends with its mark or its line; one of 120 characters stays, one of 121
// is cut.
//
// P42
func TestSentence(t *testing.T) {
	for s, want := range map[string]string{
		"One. Two.": "One.", "Is it? Yes.": "Is it?", "v1.2 is out. Go": "v1.2 is out.", "a line\nmore": "a line", "": "", " \n ": "",
		"一。二。": "一。", "no end": "no end", "end.": "end.", "\n\n  first\tthing\n": "first thing",
		strings.Repeat("x", 119): strings.Repeat("x", 119), strings.Repeat("x", 120): strings.Repeat("x", 120),
		strings.Repeat("x", 121): strings.Repeat("x", 119) + "…",
	} {
		if got := decay.Sentence(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// A task that fits stays; of a longer one as much stays as fits, two thirds of it the
// beginning.
//
// P06
func TestCutTask(t *testing.T) {
	count := utf8.RuneCountInString
	task := strings.Repeat("a", 600) + strings.Repeat("ü", 300)
	for tokens, whole := range map[int]bool{899: false, 900: true, 901: true} {
		if got := decay.CutTask(task, "message_001", tokens, count); (got == task) != whole {
			t.Errorf("%d tokens: %q", tokens, got)
		}
	}
	mark := "\n[...550 chars omitted; full text: message_001]\n"
	want := strings.Repeat("a", 234) + mark + strings.Repeat("ü", 116)
	if got := decay.CutTask(task, "message_001", 350+count(mark), count); got != want {
		t.Errorf("got %q", got)
	}
	if got := decay.CutTask(task, "", 400, count); !strings.Contains(got, " chars omitted]\n") || count(got) > 400 {
		t.Errorf("without a reference: %d characters, %q", count(got), got)
	}
	for tokens := 60; tokens < 900; tokens++ {
		if got := count(decay.CutTask(task, "m", tokens, count)); got > tokens || got < tokens-2 {
			t.Fatalf("%d characters of %d", got, tokens)
		}
	}
}
