package tokens_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

var texts = map[string]string{
	"empty":       "",
	"word":        "hello",
	"prose":       "The quick brown fox jumps over the lazy dog. It's 12:30, isn't it?\n",
	"code":        "func main() {\n\tfmt.Println(\"a\\tb\")\n\t// comment ===== \n}\r\n\r\n",
	"json":        `{"path":"README.md","lines":[1,22,333,4444],"ok":true,"ratio":-1.5e-9}`,
	"han":         "你好，世界。天地玄黄宇宙洪荒",
	"kana":        "ひらがなとカタカナ",
	"hangul":      "안녕하세요 세계",
	"thai":        "สวัสดีชาวโลก",
	"hindi":       "नमस्ते दुनिया",
	"arabic":      "مرحبا بالعالم ١٢٣",
	"emoji":       "👩‍👩‍👧‍👦 🇩🇪 👍🏽!!",
	"combining":   "e\u0301a\u0308 !\u0301!\u0301",
	"spaces":      "a  b   c    \n\n   d \t e\u00a0\u2003f",
	"special":     "<|endoftext|> <|fim_prefix|> <|endofprompt|>",
	"invalid":     "a\xff\xfe\x80b \xc3(",
	"controls":    "a\x00b\x01\x7f\u0085\u2028c",
	"long digits": strings.Repeat("1234567890", 1000),
	"camel":       "getHTTPResponseCodeFromXMLParserURLs",
	"apostrophes": "I'LL say 'tis y'all'd've 'sup DON'T l'été 'R'e 'ſ",
	"slashes":     "a://b/c\n//d/\r\n/ !/\n/!\n",
	"titles":      "ǅungla ǅǅ ʰabc ªº Ωμέγα ΩΜΕΓΑ ῼdi",
	"mark first":  "\u0301abc \u0301ABC \u0301's\u0301 \u0301",
}

// The count is the tokenizer's own, new or remembered.
func TestCountAgreesWithTokenizer(t *testing.T) {
	for encoding, model := range models {
		oracle := MustOracle(t, encoding)
		c := MustCounter(t, nil)
		for name, text := range texts {
			t.Run(string(encoding)+"/"+name, func(t *testing.T) {
				want := tokens.Count{Tokens: oracle(text), Counter: string(encoding), Exact: true}
				for range 2 {
					if got := MustCount(t, c, model, text); got != want {
						t.Errorf("got %+v, want %+v", got, want)
					}
				}
			})
		}
	}
}

// The tokenizer ignores the case of a contraction and takes a long s for an s;
// the library that is the oracle elsewhere does not. So " I'ſ" is one piece,
// whose first token is " I'".
func TestLongSContracts(t *testing.T) {
	if got := MustCount(t, MustCounter(t, nil), "gpt-4o", " I'ſ").Tokens; got != 2 {
		t.Errorf("got %d tokens, want 2", got)
	}
}

// alphabets are characters that the splitting rules tell apart: a sample of
// each category of Unicode, and sets in which rules meet.
func alphabets() [][]rune {
	found := [][]rune{
		[]rune("'sSdDmMtTllLLvVeErR"), []rune(" \t\n\r\v\f\u00a0\u2003\u3000\u0085"), []rune("/\n\r!/#"),
		[]rune("abcXYZ"), []rune("0123456789"), []rune("aA1 \n'"), []rune(" a"), []rune("\n "), []rune("'re'LL "),
		[]rune("ǅʰªºa\u0301\u200d"), []rune("👍🎉🏽\u200d\ufe0f"), []rune("天地ひカ한"),
		{unicode.ReplacementChar},
	}
	for _, name := range slices.Sorted(maps.Keys(unicode.Categories)) {
		if sample := sampleOf(unicode.Categories[name]); len(sample) > 0 && name != "Cs" {
			found = append(found, sample)
		}
	}
	return found
}

// sampleOf returns some thousands of a table's characters without surrogates.
func sampleOf(table *unicode.RangeTable) []rune {
	const perRange = 64
	var sample []rune
	add := func(low, high, stride rune) {
		for i := range rune(perRange) {
			if r := low + i*stride; r <= high && !unicode.Is(unicode.Cs, r) {
				sample = append(sample, r)
			}
		}
	}
	for _, r := range table.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range table.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return sample
}

// randomText mixes three alphabets, with repetitions.
func randomText(r *rand.Rand, from [][]rune) string {
	mix := [][]rune{from[r.IntN(len(from))], from[r.IntN(len(from))], from[r.IntN(len(from))]}
	var b strings.Builder
	for range 1 + r.IntN(40) {
		letters := mix[r.IntN(len(mix))]
		c := letters[r.IntN(len(letters))]
		for range 1 + r.IntN(2)*r.IntN(4) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func TestRandomTextsAgree(t *testing.T) {
	seed := chance.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	from := alphabets()
	c := MustCounter(t, nil)
	rounds := 6_000
	if testing.Short() || underRace() {
		rounds = 1_000
	}
	for encoding, model := range models {
		oracle := MustOracle(t, encoding)
		for range rounds {
			text := randomText(r, from)
			if strings.Contains(text, "'ſ") {
				continue // see TestLongSContracts
			}
			if got, want := MustCount(t, c, model, text).Tokens, oracle(text); got != want {
				t.Errorf("%s: %q: got %d, want %d", encoding, text, got, want)
			}
		}
	}
}

// Runs that the tokenizer can't split agree too, as long as the oracle can do
// them.
func TestRunsAgree(t *testing.T) {
	c := MustCounter(t, nil)
	for encoding, model := range models {
		oracle := MustOracle(t, encoding)
		for _, size := range []int{63, 64, 65, 3000} {
			for name, text := range runs(size) {
				if got, want := MustCount(t, c, model, text).Tokens, oracle(text); got != want {
					t.Errorf("%s: %s of %d bytes: got %d, want %d", encoding, name, size, got, want)
				}
			}
		}
	}
}

// Counts of the recorded runs' texts are the tokenizer's. The oracle takes
// ten seconds for them.
func TestRecordedTextsAgree(t *testing.T) {
	if testing.Short() || underRace() {
		t.Skip("the oracle takes minutes under the race detector")
	}
	recorded := MustTexts(t)
	c := MustCounter(t, nil)
	for _, encoding := range []tokens.Encoding{tokens.O200K, tokens.CL100K} {
		oracle := MustOracle(t, encoding)
		wrong := 0
		for _, text := range recorded {
			if MustCount(t, c, models[encoding], text).Tokens != oracle(text) {
				wrong++
			}
		}
		t.Logf("%s: %d texts, %d differ", encoding, len(recorded), wrong)
		if wrong > 0 {
			t.Errorf("%s: %d texts differ", encoding, wrong)
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, text := range texts {
		f.Add(text, uint8(3))
	}
	f.Add("\u0301 \u0301a", uint8(200))
	f.Add("\xe0000", uint8(170))
	c := MustCounter(f, nil)
	counted := make(map[tokens.Encoding]func(string) int)
	for encoding := range models {
		counted[encoding] = MustOracle(f, encoding)
	}
	f.Fuzz(func(t *testing.T, text string, times uint8) {
		text = strings.Repeat(text, int(times)+1)
		if len(text) > 1<<12 || strings.Contains(text, "'ſ") {
			return
		}
		for encoding, model := range models {
			if got, want := MustCount(t, c, model, text).Tokens, counted[encoding](text); got != want {
				t.Errorf("%s: got %d, want %d", encoding, got, want)
			}
		}
	})
}
