package analysis_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

func terms(text string) []string {
	return slices.Collect(analysis.New().Terms(text))
}

func TestTerms(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", ""},
		{"spaces and marks", " \t.,;!? -- ", ""},
		{"stems and stop words", "The cats were running to the houses", "cat run hous"},
		{"case", "BITCOIN Bitcoin bitcoin", "bitcoin bitcoin bitcoin"},
		{"possessive", "Caroline's dog, Caroline’s cat", "carolin dog carolin cat"},
		{"contraction", "I don't, we'll, café's", "café"},
		{"stop words alone are kept", "To be, or not to be?", "to be or not to be"},
		{"one letter", "x marks vitamin C", "x mark vitamin c"},
		{"camel case", "call getUserName now", "call get user name getusernam now"},
		{"acronym in camel case", "HTTPServer", "http server httpserver"},
		{"plural of an acronym", "URLs", "url"},
		{"product name", "iPhone", "phone iphon"},
		{"path", "see a/b/c.py.", "see b c py c.py a/b/c.py"},
		{"backslash path", `src\main.go`, `src main go main.go src\main.go`},
		{"version", "v1.2.3 is out", "v1 2 3 v1.2.3"},
		{"snake case", "max_token_count", "max token count max_token_count"},
		{"mail", "mail ann@example.com", "mail ann exampl com ann@example.com"},
		{"prose hyphens", "state-of-the-art", "state art"},
		{"hyphen with a number", "gpt-4o and utf-8", "gpt 4o gpt-4o utf 8 utf-8"},
		{"date", "2024-05-08 at 14:30", "2024 05 08 2024-05-08 14 30 14:30"},
		{"thousands", "at 45,000 or 1,234,567.50", "45000 1234567 50 1234567.50"},
		{"no thousands", "1,2,3 and 1234,567", "1 2 3 1234 567"},
		{"ellipsis joins nothing", "wait...what", "wait"},
		{"json", `{"user_id":42,"ok":true}`, "user id user_id 42 ok true"},
		{"url", "https://example.com/docs?page=2", "https exampl com doc example.com/docs page 2"},
		{"full width", "ＡＢＣ １２３", "abc 123"},
		{"ligature", "ﬁnding", "find"},
		{"accents", "Das Café über Straße", "das café über strass"},
		{"greek", "ΣΊΣΥΦΟΣ", "σίσυφοσ"},
		{"cyrillic", "Москва, Россия", "москва россия"},
		{"apostrophe outside ascii", "l’été d’Éric", "l été éric"},
		{"dotted outside ascii", "über.md", "über md über.md"},
		{"typographic quotes around a path", "“src/app.py”", "src app py app.py src/app.py"},
		{"chinese", "我喜欢比特币。猫", "我喜 喜欢 欢比 比特 特币 猫"},
		{"japanese", "カフェで会いましょう", "カフ フェ ェで で会 会い いま まし しょ ょう"},
		{"half width kana", "ｶﾌｪ", "カフ フェ"},
		{"prolonged sound", "コーヒー", "コー ーヒ ヒー"},
		{"korean", "한국어는 좋아요", "한국 국어 어는 좋아 아요"},
		{"mixed scripts", "使用getUserName函数", "使用 get user name getusernam 函数"},
		{"emoji", "party 🎉🎉", "parti 🎉 🎉"},
		{"not UTF-8", "caf\xe9 bar", "caf bar"},
		{"NUL", "a\x00b c", "b c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Fields(tt.want), terms(tt.text)); diff != "" && len(terms(tt.text))+len(tt.want) > 0 {
				t.Errorf("terms of %q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestLongWordsAreCutAlike(t *testing.T) {
	long := strings.Repeat("ab1", 100)
	for _, text := range []string{long, strings.Repeat("é", 100), strings.Repeat("x", 300)} {
		for _, term := range terms(text) {
			if len(term) > analysis.MaxTermBytes || !utf8.ValidString(term) {
				t.Errorf("term of %d bytes, valid=%v", len(term), utf8.ValidString(term))
			}
		}
	}
	if diff := cmp.Diff(terms(long), terms(long[:len(long)-3])); diff != "" {
		t.Errorf("long words that differ behind the cut (-a +b):\n%s", diff)
	}
}

func TestLongIdentifierIsOnlySplit(t *testing.T) {
	path := strings.Repeat("dir/", 40) + "end"
	got := terms(path)
	if len(got) != 41 || got[40] != "end" {
		t.Errorf("got %d terms ending in %q", len(got), got[len(got)-1])
	}
}

func TestTermsStopsWhenAsked(t *testing.T) {
	for _, text := range []string{"one two three", "über zwei drei", "比特币比特币", "🎉🎉🎉", "fooBar barFoo", "a/b.c d"} {
		n := 0
		for range analysis.New().Terms(text) {
			if n++; n == 1 {
				break
			}
		}
		if n != 1 {
			t.Errorf("%q: %d terms after a break", text, n)
		}
	}
}

func TestAnalyzerIsShared(t *testing.T) {
	a := analysis.New()
	want := slices.Collect(a.Terms(sample))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := slices.Collect(a.Terms(sample)); !slices.Equal(got, want) {
					t.Errorf("terms differ between goroutines")
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"", "The cats", "getUserName a/b/c.py v1.2.3", "コーヒー 比特币", "l’été 45,000's", "\xff\xfe", "ﷺ ǅ ẞ İ"} {
		f.Add(seed)
	}
	a := analysis.New()
	f.Fuzz(func(t *testing.T, text string) {
		first := slices.Collect(a.Terms(text))
		for _, term := range first {
			if term == "" || len(term) > analysis.MaxTermBytes || !utf8.ValidString(term) {
				t.Fatalf("bad term %q of %q", term, text)
			}
		}
		if again := slices.Collect(analysis.New().Terms(text)); !slices.Equal(first, again) {
			t.Fatalf("terms of %q differ: %q, %q", text, first, again)
		}
	})
}

func FuzzFold(f *testing.F) {
	for _, seed := range []string{"", "Straße", "ΣΊΣΥΦΟΣ", "ǅ", "İ", "ﬁ", "ᾳͅ", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := analysis.Fold(text)
		if twice := analysis.Fold(once); twice != once {
			t.Fatalf("folding %q: %q, then %q", text, once, twice)
		}
	})
}

var sample = strings.Repeat("Caroline told Melanie that the adoption agency interviews went well last Friday, and that she's thankful for all the support of her friends and mentors. ", 7)[:1024]

func BenchmarkTerms(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"prose", sample},
		{"code", strings.Repeat("func getUserName(ctx context.Context, id string) (string, error) { return s.users[id].name, nil }\n", 11)[:1024]},
		{"german", strings.Repeat("Die Größe der Häuser überraschte uns, während wir durch die Straßen gingen. ", 14)[:1024]},
		{"chinese", strings.Repeat("我喜欢比特币和区块链技术。", 27)[:1023]},
	} {
		b.Run(bb.name, func(b *testing.B) {
			a := analysis.New()
			b.SetBytes(int64(len(bb.text)))
			for b.Loop() {
				for range a.Terms(bb.text) {
				}
			}
		})
	}
}

func BenchmarkTermsOfNewWords(b *testing.B) {
	words := make([]string, 0, 1<<16)
	for i := range 1 << 16 {
		words = append(words, string(rune('a'+i%26))+"or"+string(rune('a'+i/26%26))+"at"+string(rune('a'+i/676%26))+"ional"+string(rune('a'+i/17576%26)))
	}
	a := analysis.New()
	text, n := strings.Join(words, " "), 0
	for b.Loop() {
		n = n % (len(text) - 1024)
		for range a.Terms(text[n : n+1024]) {
		}
		n += 1024
	}
}
