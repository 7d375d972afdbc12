package tokens

import (
	"math"
	"unicode"
)

// What a character costs in hundredths of a token, where no vocabulary is
// known. The scripts' weights are what o200k_base needs on average; the
// popular emoji take it nearly two tokens each.
const (
	hanWeight    = 79
	kanaWeight   = 74
	hangulWeight = 80
	emojiWeight  = 180
	otherWeight  = 25
	wholeToken   = 100
)

// firstHeavy is below every character that weighs more than others do.
const firstHeavy = 0x1100

// weight returns what a character costs.
func weight(r rune) int {
	switch {
	case r < firstHeavy:
		return otherWeight
	case unicode.Is(unicode.Han, r):
		return hanWeight
	case unicode.In(r, unicode.Hiragana, unicode.Katakana) || r == '\u30fc':
		return kanaWeight
	case unicode.Is(unicode.Hangul, r):
		return hangulWeight
	case r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2600 && r <= 0x27BF:
		return emojiWeight
	}
	return otherWeight
}

// byScripts is the least that is estimated of a text: what its scripts cost. An
// empty text has none.
func byScripts(text string) int {
	hundredths := 0
	for _, r := range text {
		hundredths += weight(r)
	}
	return (hundredths + wholeToken - 1) / wholeToken
}

// scaled is a count for a model that makes ratio tokens of each one counted.
func scaled(n int, ratio float64) int {
	if ratio == 1 {
		return n
	}
	// A hair less, so that 100 times 1.1 is not 111.
	return int(math.Ceil(float64(n)*ratio - 1e-9))
}
