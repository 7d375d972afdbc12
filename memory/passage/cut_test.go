package passage

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestCut(t *testing.T) {
	sentence := "This sentence is as long as one has to be so that it stands alone among all the others."
	word := strings.Repeat("x", maxPiece)
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"spaces", " \n\t ", nil},
		{"short ones together", "One. Two? Three!", []string{"One. Two? Three!"}},
		{"paragraphs apart", "One.\n\nTwo.", []string{"One.", "Two."}},
		{"long ones apart", sentence + " " + sentence, []string{sentence, sentence}},
		{"a short one before a long one", "Yes. " + sentence, []string{"Yes. " + sentence}},
		{"not behind numbers and names", sentence[:70] + " of 3.5 for e.g.x and more of it", []string{sentence[:70] + " of 3.5 for e.g.x and more of it"}},
		{"what closes a sentence", sentence[:80] + ` end.") ` + sentence, []string{sentence[:80] + ` end.")`, sentence}},
		{"without spaces", strings.Repeat("東京タワーはとても高いです。", 3), []string{strings.Repeat("東京タワーはとても高いです。", 2), "東京タワーはとても高いです。"}},
		{"a word that has no end", word + word, []string{word, word}},
		{"between words where there is no end", strings.Repeat("word ", 100), []string{strings.TrimSpace(strings.Repeat("word ", 96)), "word word word word"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, p := range cut(test.text) {
				got = append(got, p.In(test.text))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

// Pieces hold all but spaces, once, and are bounded.
func FuzzCut(f *testing.F) {
	f.Add("One. Two?\n\n東京タワー。Three!" + strings.Repeat("word ", 200))
	f.Fuzz(func(t *testing.T, text string) {
		var joined strings.Builder
		end := 0
		for _, p := range cut(text) {
			if p.From < end || p.To <= p.From || p.To-p.From > maxPiece+minPiece {
				t.Fatalf("piece %+v behind %d of %q", p, end, text)
			}
			end = p.To
			joined.WriteString(p.In(text))
		}
		bare := func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsSpace(r) {
					return -1
				}
				return r
			}, s)
		}
		if bare(joined.String()) != bare(text) {
			t.Fatalf("pieces of %q hold %q", text, joined.String())
		}
	})
}
