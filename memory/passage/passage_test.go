package passage_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/passage"
)

// byWords is a filler that asks for words and counts each word as a token.
func byWords(asked ...string) *passage.Filler {
	terms := func(text string) iter.Seq[string] {
		return slices.Values(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }))
	}
	f := &passage.Filler{Terms: terms, Weights: make(map[string]float64), Count: func(text string) int { return len(strings.Fields(text)) }}
	for _, word := range asked {
		f.Weights[word] = 1
	}
	return f
}

func mustFill(tb testing.TB, f *passage.Filler, budget int, texts ...string) []passage.Excerpt {
	tb.Helper()
	var found []passage.Text
	for i, text := range texts {
		found = append(found, passage.Text{Text: text, Value: 1 / float64(i+1)})
	}
	parts, err := f.Fill(tb.Context(), found, budget)
	if err != nil {
		tb.Fatal(err)
	}
	return parts
}

// long is a text of paragraphs that tell nothing, with one that does in the middle.
func long(told string) string {
	filler := strings.Repeat("Then we talked about one thing and another, as people do on a train. ", 6)
	return filler + "\n\n" + told + "\n\n" + filler
}

func given(texts []string, parts []passage.Excerpt) (all []string) {
	for i, p := range parts {
		if p.Whole {
			all = append(all, texts[i])
		}
		for _, s := range p.Passages {
			all = append(all, s.In(texts[i]))
		}
	}
	return all
}

// A long text does not end the answer: what it tells of what was asked is given, and then
// others have their turn.
func TestLongTextGivesWhatWasAsked(t *testing.T) {
	told := "The harbour pilot is called Marit, and she answers the telephone only before eight in the morning."
	texts := []string{long(told), "The harbour is deep.", "Breakfast was late."}
	parts := mustFill(t, byWords("harbour", "pilot"), 24, texts...)
	if got := given(texts, parts); !slices.Contains(got, told) || !slices.Contains(got, texts[1]) {
		t.Errorf("given are %q", got)
	}
	if parts[0].Whole || len(parts[0].Passages) != 1 || parts[0].Tokens != 17 {
		t.Errorf("the long text gives %+v", parts[0])
	}
}

// A short text is given whole or not at all.
func TestShortTextsStayWhole(t *testing.T) {
	short := "The harbour pilot is called Marit. She answers the telephone only before eight in the morning. Write to her instead. She reads what comes by post."
	for budget := range 60 {
		parts := mustFill(t, byWords("harbour"), budget, short, short+" Twice.")
		for i, p := range parts {
			if len(p.Passages) > 0 || p.Whole && p.Tokens < 26 {
				t.Fatalf("of %d tokens text %d gives %+v", budget, i, p)
			}
		}
		if parts[0].Given() != (budget >= 26) {
			t.Errorf("of %d tokens the first text gives %+v", budget, parts[0])
		}
	}
}

// What says again what is given already comes when nothing else is left.
func TestRepeatsComeLast(t *testing.T) {
	first := "The harbour pilot is called Marit."
	texts := []string{first, "Noted: the harbour pilot is called Marit.", "The harbour closes at nine."}
	parts := mustFill(t, byWords("harbour", "pilot"), 13, texts...)
	if got := given(texts, parts); !slices.Equal(got, []string{texts[0], texts[2]}) {
		t.Errorf("of 13 tokens given are %q", got)
	}
	parts = mustFill(t, byWords("harbour", "pilot"), 18, texts...)
	if got := given(texts, parts); len(got) != 3 {
		t.Errorf("of 18 tokens given are %q", got)
	}
}

// Of one text alone come the passages that say something, in their order, and where none
// does its beginning.
func TestPassagesOfOneText(t *testing.T) {
	text := long("The harbour pilot is called Marit, and she answers the telephone only before eight in the morning.")
	f := byWords("marit")
	f.Count = func(s string) int { return len(s) }
	tell := func(f *passage.Filler, budget int) (all []string) {
		for _, p := range f.Passages(text, budget) {
			all = append(all, p.In(text))
		}
		return all
	}
	if got := tell(f, 600); len(got) == 0 || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "Marit") }) || len(strings.Join(got, "")) > 300 {
		t.Errorf("passages %q", got)
	}
	if got := tell(f, len(text)); !slices.Equal(got, []string{text}) {
		t.Errorf("of what fits %q", got)
	}
	if got := tell(f, 10); got != nil {
		t.Errorf("of ten bytes %q", got)
	}
	f.Weights = nil
	if got := tell(f, 200); len(got) == 0 || !strings.HasPrefix(text, got[0]) {
		t.Errorf("of what nobody asked for %q", got)
	}
}

// What stands beside a text takes room once, however many passages of it are given.
func TestWhatStandsBeside(t *testing.T) {
	f := byWords("harbour", "pilot")
	texts := []passage.Text{
		{Text: long("The harbour pilot is called Marit.") + long("The harbour is deep."), Value: 1, Beside: 5},
		{Text: "The harbour closes at nine.", Value: .9, Beside: 3},
	}
	for budget := 1; budget < 400; budget++ {
		parts, err := f.Fill(t.Context(), texts, budget)
		if err != nil {
			t.Fatal(err)
		}
		sum, want := 0, 0
		for i, p := range parts {
			sum += p.Tokens
			if p.Given() {
				want += texts[i].Beside
			}
			if p.Whole {
				want += f.Count(texts[i].Text)
			}
			for _, s := range p.Passages {
				want += f.Count(s.In(texts[i].Text))
			}
		}
		if sum != want || sum > budget {
			t.Fatalf("of %d tokens %d are told, %d given: %+v", budget, sum, want, parts)
		}
	}
}

// Where all fits, all is given as it is.
func TestAllThatFitsIsWhole(t *testing.T) {
	texts := []string{long("The harbour is deep."), "  spaces around  ", long("Breakfast was late.")}
	for i, p := range mustFill(t, byWords("harbour"), 10_000, texts...) {
		if !p.Whole || p.Tokens != len(strings.Fields(texts[i])) {
			t.Errorf("text %d gives %+v", i, p)
		}
	}
}

func TestFillEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := byWords("a").Fill(ctx, []passage.Text{{Text: long("a"), Value: 1}}, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Few texts are counted of many that can't fit.
func TestCountsFew(t *testing.T) {
	f, counted := byWords("harbour"), 0
	count := f.Count
	f.Count = func(text string) int { counted += len(text); return count(text) }
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = strings.Repeat("The harbour is deep. ", 10_000)
	}
	mustFill(t, f, 20, texts...)
	if counted > 2000 {
		t.Errorf("%d bytes were counted for 20 tokens", counted)
	}
}

// checkParts checks what holds of every answer.
func checkParts(tb testing.TB, f *passage.Filler, texts []string, parts []passage.Excerpt, budget int) {
	tb.Helper()
	sum := 0
	for i, p := range parts {
		text, end, tokens := texts[i], 0, 0
		if p.Whole {
			tokens = f.Count(text)
		}
		if p.Whole && len(p.Passages) > 0 {
			tb.Fatalf("text %d is whole and in part: %+v", i, p)
		}
		for _, s := range p.Passages {
			switch {
			case s.From < end, s.To <= s.From, s.To > len(text):
				tb.Fatalf("passages of text %d are out of order: %+v", i, p)
			case utf8.ValidString(text) && !utf8.ValidString(s.In(text)):
				tb.Fatalf("passage %+v of %q cuts a character", s, text)
			case strings.TrimSpace(s.In(text)) != s.In(text):
				tb.Fatalf("passage %q has spaces at its ends", s.In(text))
			}
			end, tokens = s.To, tokens+f.Count(s.In(text))
		}
		if tokens != p.Tokens {
			tb.Fatalf("text %d has %d tokens, told are %d", i, tokens, p.Tokens)
		}
		sum += tokens
	}
	if sum > budget {
		tb.Fatalf("%d tokens given, the budget is %d", sum, budget)
	}
}

// Whatever the texts, the tokens never exceed the budget, and passages are stretches of
// their texts, in order, apart.
func TestFillHoldsForAnyTexts(t *testing.T) {
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	bits := []string{"harbour", "pilot", "a", "東京タワーは高いです。", "é", "🙂", ". ", "? ", "! ", "\n", "\n\n", "   ", "3.14", "“quoted.” ", "(so.) ", strings.Repeat("x", 700), "один два. ", "\t", "...", "\xff", " "}
	counts := map[string]func(string) int{
		"bytes":  func(s string) int { return len(s) },
		"words":  func(s string) int { return len(strings.Fields(s)) },
		"joined": func(s string) int { return 1 + len(s)*len(s)/1000 }, // two halves are less than the whole
	}
	analyzer := analysis.New(nil)
	for range 80 {
		var texts []string
		for range rng.IntN(6) {
			var b strings.Builder
			for range 1 + rng.IntN(200) {
				b.WriteString(bits[rng.IntN(len(bits))])
				if rng.IntN(2) == 0 {
					b.WriteByte(' ')
				}
			}
			texts = append(texts, b.String())
		}
		for name, count := range counts {
			f := &passage.Filler{Terms: analyzer.Terms, Weights: map[string]float64{"harbour": 2, "pilot": 1}, Count: count}
			budget := rng.IntN(1 << rng.IntN(12))
			parts := mustFill(t, f, budget, texts...)
			checkParts(t, f, texts, parts, budget)
			if again := mustFill(t, f, budget, texts...); !slices.EqualFunc(parts, again, func(a, b passage.Excerpt) bool {
				return a.Whole == b.Whole && slices.Equal(a.Passages, b.Passages)
			}) {
				t.Fatalf("%s: the same texts give %+v, then %+v", name, parts, again)
			}
		}
	}
}

func FuzzFill(f *testing.F) {
	f.Add("The harbour. Is it deep?\n\nYes (very).", long("東京タワーは高いです。"), 12)
	f.Add("", " \n ", 0)
	f.Fuzz(func(t *testing.T, first, second string, budget int) {
		filler := byWords("harbour", "deep")
		budget = max(0, budget)
		checkParts(t, filler, []string{first, second}, mustFill(t, filler, budget, first, second), budget)
	})
}

// What is remembered of texts changes nothing, and spares reading them again.
func TestMemo(t *testing.T) {
	read := 0
	f := byWords("harbour")
	terms := f.Terms
	f.Terms = func(text string) iter.Seq[string] {
		read++
		return terms(text)
	}
	var texts []string
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("Ann has seen harbour %d in the year %d, and liked it well.", i%20, 1900+i%7))
	}
	const budget = 120
	want := mustFill(t, f, budget, texts...)
	if read < 10 {
		t.Fatalf("without a memo %d texts were read", read)
	}
	f.Memo = passage.NewMemo()
	for _, most := range []int{read, 0} {
		read = 0
		if got := mustFill(t, f, budget, texts...); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if read > most {
			t.Errorf("%d texts were read, at most %d wanted", read, most)
		}
	}
}
