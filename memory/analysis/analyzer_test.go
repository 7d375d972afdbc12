package analysis_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

func terms(text string) []string {
	return slices.Collect(analysis.New(nil).Terms(text))
}

func TestTerms(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", ""},
		{"spaces and marks", " \t.,;!? -- ", ""},
		{"stems and stop words", "The cats were running to the houses", "cat run hous"},
		{"case", "BITCOIN Bitcoin bitcoin", "bitcoin bitcoin bitcoin"},
		{"possessive", "Caroline's dog, Caroline’s cat", "carolin dog carolin cat"},
		{"contraction", "I don't, we'll, café's", "cafe"},
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
		{"numeric date", "2024-05-08 at 14:30", "2024 may 8 2024-05-08 14 30 14:30"},
		{"numeric date and time", "2024-05-08T14:30:00Z", "2024 may 8 2024-05-08 14 30 00 00z 14:30:00z"},
		{"other numeric dates", "2024/7/9, 2024.12.31.", "2024 juli 9 2024-07-09 2024 decemb 31 2024-12-31"},
		{"no dates", "2024-13-08 2024-5/8 2024-05-08-1 12024-05-08", "2024 13 08 2024-13-08 2024 5 8 2024-5/8 2024 05 08 1 2024-05-08-1 12024 05 08 12024-05-08"},
		{"written dates", "8 May 2024; 8th of May, 2024; May 8, 2024; may 8th 2024", "8 may 2024 8th may 2024 may 8 2024 may 8th 2024"},
		{"short month", "Sept. 3, 2024 and 3 jul 2024", "septemb 3 2024 3 juli 2024"},
		{"dates in part", "in May 2024, on May 8 and 8 May", "may 2024 may 8 8 may"},
		{"may and mar are words, too", "It may rain; may 50 people; del Mar; 32 May", "rain 50 person del mar 32"},
		{"times are no days", "meet 14:30 May or May 8:30", "meet 14 30 14:30 8 30 8:30"},
		{"irregular forms", "He went and bought the children's books; she has gone to buy a book for a child", "go buy child book go buy book child"},
		{"forms of two words", "She lives where they live, a living, of their lives; the life of leaves, he leaves, a leaf", "live live live live live leav leav leav"},
		{"nouns like irregular forms", "a rose, roses; a thought, thoughts; a shot, two shots", "rise rise think think shoot two shoot"},
		{"thousands", "at 45,000 or 1,234,567.50", "45000 1234567 50 1234567.50"},
		{"no thousands", "1,2,3 and 1234,567", "1 2 3 1234 567"},
		{"ellipsis joins nothing", "wait...what", "wait"},
		{"json", `{"user_id":42,"ok":true}`, "user id user_id 42 true"},
		{"url", "https://example.com/docs?page=2", "https exampl com doc example.com/docs page 2"},
		{"full width", "ＡＢＣ １２３", "abc 123"},
		{"ligature", "ﬁnding", "find"},
		{"accents", "Das Café über Straße", "cafe strass"},
		{"accents in capitals and apart", "CAFE\u0301 İstanbul, Łódź, Øre, Đà Nẵng, naïve", "cafe istanbul lodz ore da nang naiv"},
		{"stop words only without their accents", "le thé, Mỹ ăn", "le the my an"},
		{"marks that are part of the word", "й ё हिन्दी שָׁלוֹם", "й е हिन्द לומ"},
		{"greek", "ΣΊΣΥΦΟΣ ΣΙΣΥΦΟΣ σίσυφος", "σισυφ σισυφ σισυφ"},
		{"cyrillic", "Москва, Россия", "москв росс"},
		{"apostrophe outside ascii", "l’été d’Éric", "l ete eric"},
		{"dotted outside ascii", "über.md", "uber md uber.md"},
		{"typographic quotes around a path", "“src/app.py”", "src app py app.py src/app.py"},
		{"chinese", "我喜欢比特币。猫", "我喜 喜欢 欢比 比特 特币 猫"},
		{"japanese", "カフェで会いましょう", "カフ フェ ェで で会 会い いま まし しょ ょう"},
		{"half width kana", "ｶﾌｪ", "カフ フェ"},
		{"prolonged sound", "コーヒー", "コー ーヒ ヒー"},
		{"korean", "한국어는 좋아요", "한국 국어 어는 좋아 아요"},
		{"thai", "กรุงเทพ ๑๒", "กร รุ ุง งเ เท ทพ 12"},
		{"khmer, burmese, lao", "កម្ពុ မြန် ລາວ", "កម ម្ ្ព ពុ မြ ြန န် ລາ າວ"},
		{"thai beside latin", "ซื้อiPhone", "ซื ื้ ้อ phone iphon"},
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

func distinct(terms []string) string {
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), " ")
}

// An index and a query have terms aside of those that count.
func TestAsides(t *testing.T) {
	tests := []struct{ name, text, indexed, asked string }{
		{"stop words", "It was The Who", "^it ^the ^who it the was who", "^it ^the ^who"},
		{"stop words alone", "the Who", "^who the who", "^who"},
		{"capitals", "IT works", "^it it", "^it"},
		{"a text in capitals", "IT IS RAINING", "^is is it", "^is"},
		{"single letter", "vitamin D and I", "^d and d i", "^d"},
		{"unspaced", "养猫 ねこ", "こ ね 养 猫", "养 猫"},
		{"letters spelled out", "Müller Åse Øre", "aas mueller oer", "aas mueller oer"},
		{"hyphens and dots", "Wi-Fi of the U.S.", "of s the us wifi", "us wifi"},
		{"signs", "Disney+ with .NET", ".net disney+ with", ".net disney+"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := analysis.New(nil)
			var indexed, asked []string
			counted := slices.Collect(a.Indexed(tt.text, func(term string) { indexed = append(indexed, term) }))
			alike := slices.Collect(a.Asked(tt.text, func(term string) { asked = append(asked, term) }))
			if diff := cmp.Diff([][]string{terms(tt.text), terms(tt.text)}, [][]string{counted, alike}); diff != "" {
				t.Errorf("terms (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{tt.indexed, tt.asked}, []string{distinct(indexed), distinct(asked)}); diff != "" {
				t.Errorf("asides of %q (-want +got):\n%s", tt.text, diff)
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
		for range analysis.New(nil).Terms(text) {
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
	a := analysis.New(nil)
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

func TestLanguages(t *testing.T) {
	tests := []struct {
		language analysis.Language
		text     string
		want     string
	}{
		{analysis.French, "Les chevaux étaient dans l'écurie, getUserName", "cheval écur get user nam getusernam"},
		{analysis.Spanish, "Los niños corrían por las calles", "niñ corr call"},
		{analysis.Russian, "Мы говорили о красивых домах", "говор красив дом"},
		{analysis.Swedish, "flickorna och pojkarna", "flick pojk"},
		{analysis.Norwegian, "guttene og jentene", "gutt jent"},
		{analysis.Hungarian, "a házakban voltak", "ház"},
		{analysis.German, "Die Häuser meiner Eltern", "haus elt"},
		{analysis.Italian, "le case dei nostri genitori", "cas genitor"},
		{analysis.Language(200), "The cats", "cat"},
	}
	for _, tt := range tests {
		a := analysis.New(&analysis.Options{Language: tt.language})
		if diff := cmp.Diff(strings.Fields(tt.want), slices.Collect(a.Terms(tt.text))); diff != "" {
			t.Errorf("%s: terms of %q (-want +got):\n%s", tt.language, tt.text, diff)
		}
	}
	for _, l := range analysis.Languages() {
		if parsed, err := analysis.ParseLanguage(l.String()); err != nil || parsed != l {
			t.Errorf("parse %s: %v, %v", l, parsed, err)
		}
		a := analysis.New(&analysis.Options{Language: l})
		for _, text := range []string{"2024-05-08", "日本語", "src/app.py", strings.Repeat("ж", 200)} {
			for term := range a.Terms(text) {
				if term == "" || len(term) > analysis.MaxTermBytes || !utf8.ValidString(term) {
					t.Errorf("%s: term %q of %q", l, term, text)
				}
			}
		}
	}
	if _, err := analysis.ParseLanguage("klingon"); !errors.Is(err, analysis.ErrUnknownLanguage) {
		t.Errorf("parse klingon: %v", err)
	}
	if l, err := analysis.ParseLanguage(""); l != analysis.Auto || err != nil {
		t.Errorf("parse nothing: %v, %v", l, err)
	}
}

// Each text is read in its own language, if it tells which that is: two texts whose words
// differ in their endings share terms. English texts and names have English terms alone.
func TestAuto(t *testing.T) {
	auto, english := analysis.New(nil), analysis.New(&analysis.Options{Language: analysis.English})
	for _, pair := range []struct {
		name, text, query string
		meet              int // how many terms of the query the text has, at least
	}{
		{"russian", "Мы долго говорили о красивых домах", "красивый дом", 2},
		{"russian, without the dots", "Она придёт с ёлками", "елка", 1},
		{"german", "Meine Eltern wohnten früher in kleinen Häusern am See", "In welchem Haus wohnen deine Eltern?", 3},
		{"dutch", "Mijn ouders lazen vroeger veel boeken", "Welk boek las mijn ouder?", 2},
		{"french", "Les chevaux étaient dans l'écurie de mes parents", "Où est le cheval de mon parent ?", 2},
		{"spanish", "Mis hermanas vivían en las ciudades grandes", "¿Dónde vive mi hermana?", 2},
		{"italian", "I miei fratelli vivevano nelle città della costa", "Dove vive mio fratello?", 1},
		{"portuguese", "As minhas irmãs não gostavam dos gatos", "A minha irmã gosta de gato?", 2},
		{"swedish", "Mina systrar bodde i de röda stugorna", "Var är min röda stuga?", 2},
		{"finnish", "Minun kissani nukkuvat aina puutarhoissa, eivät talossa", "Missä minun kissa nukkuu, onko se talo?", 1},
		{"turkish", "Kardeşlerim bu şehirde çok güzel evlerde oturuyor", "Benim kardeşim nerede, bu şehir mi?", 1},
		{"arabic", "اشترينا المدرسة الكبيرة", "مدرسة كبيرة", 2},
		{"arabic, with vowel signs", "كِتَابٌ", "الكتاب", 1},
		{"hebrew", "הספרים החדשים נמצאים בבית", "ספר חדש", 2},
		{"hindi", "लड़कियों ने किताबें पढ़ीं", "लड़की किताब", 2},
		{"greek", "Οι γάτες κοιμούνται στους κήπους", "η γάτα στον κήπο", 2},
		{"mixed", "Die Häuser gefallen mir, говорили мы о красивых домах", "Haus und красивый дом", 3},
	} {
		text := slices.Collect(auto.Terms(pair.text))
		n := 0
		for term := range auto.Terms(pair.query) {
			if slices.Contains(text, term) {
				n++
			}
		}
		if n < pair.meet {
			t.Errorf("%s: %q has %d terms of %q: %q", pair.name, text, n, pair.query, slices.Collect(auto.Terms(pair.query)))
		}
	}
	for _, text := range []string{
		sample, "What did Anna say about die Katze?", "The cats of the Müller family went to Wien", "Bitcoin price analysis",
		"dir/dir/dir", "SELECT la FROM das WHERE die = 1", "Where is the car of Van den Berg?", "Call Jean-Paul about le Tour",
		"Das Boot is a film that I like", "se_te_me.py", "Tell me Ann's car", "Tell me about non AI word games", "I was in the man cave", "", "42",
	} {
		if diff := cmp.Diff(slices.Collect(english.Terms(text)), slices.Collect(auto.Terms(text))); diff != "" {
			t.Errorf("%q is taken for another language (-english +auto):\n%s", text, diff)
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"", "The cats", "getUserName a/b/c.py v1.2.3", "コーヒー 比特币", "l’été 45,000's", "\xff\xfe", "ﷺ ǅ ẞ İ"} {
		f.Add(seed)
	}
	a := analysis.New(nil)
	f.Fuzz(func(t *testing.T, text string) {
		first := slices.Collect(a.Terms(text))
		for _, term := range first {
			if term == "" || len(term) > analysis.MaxTermBytes || !utf8.ValidString(term) {
				t.Fatalf("bad term %q of %q", term, text)
			}
		}
		if again := slices.Collect(analysis.New(nil).Terms(text)); !slices.Equal(first, again) {
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
		{"dates", strings.Repeat("On 8 May 2023 and 2023-07-09 we met, and May 3 too. ", 20)[:1024]},
		{"russian", strings.Repeat("Мы долго говорили о красивых домах на берегу реки. ", 12)[:1024]},
		{"german", strings.Repeat("Die Größe der Häuser überraschte uns, während wir durch die Straßen gingen. ", 14)[:1024]},
		{"chinese", strings.Repeat("我喜欢比特币和区块链技术。", 27)[:1023]},
	} {
		b.Run(bb.name, func(b *testing.B) {
			a := analysis.New(nil)
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
	a := analysis.New(nil)
	text, n := strings.Join(words, " "), 0
	for b.Loop() {
		n = n % (len(text) - 1024)
		for range a.Terms(text[n : n+1024]) {
		}
		n += 1024
	}
}

// A word is found by the same word, whatever its ending: what is regular meets what is
// irregular.
func TestRegularFormsMeet(t *testing.T) {
	a := analysis.New(nil)
	term := func(word string) string { return strings.Join(slices.Collect(a.Terms(word)), " ") }
	for _, forms := range []string{
		"live lives lived living life", "leave leaves leaving left leaf", "shelf shelves", "halve halves half",
		"thought thoughts think", "shot shots shoot", "rose roses rise", "spoke spokes speak", "saw saws see", "bit bits bite",
		"thief thieves", "calf calves", "wife wives", "knife knives", "self selves",
	} {
		all := strings.Fields(forms)
		for _, form := range all[1:] {
			if term(form) != term(all[0]) {
				t.Errorf("%s is %q, %s is %q", form, term(form), all[0], term(all[0]))
			}
		}
	}
}
