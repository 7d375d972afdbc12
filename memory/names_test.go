package memory_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// otherTexts lie beside what is looked for.
var otherTexts = []string{
	"The cat sleeps on the sofa", "Quarterly report is due Friday", "今天天气很好，我们去公园", "Der Zug fährt um acht",
	"We ordered pizza for lunch", "It was cold and they were late, so she took a cab to the station", "Who is it that you were with?",
	"If you are there, call me; we do not have to go", "昨日は映画を見ました", "오늘은 날씨가 좋아요", "วันนี้อากาศดี", "Можно ли это сделать завтра",
}

// A text is found by a name as it stands there, or as people write it otherwise.
func TestFoundAsItIsWritten(t *testing.T) {
	tests := []struct{ text, query string }{
		// words of one character
		{"我养了一只猫", "猫"},
		{"彼は犬が好き", "犬"},
		{"我养了一只猫", "养猫"},
		{"家に火がついた", "火"},
		{"밥을 먹었다", "밥"},
		{"밥을 먹었다", "밥은"},
		{"물 주세요", "물"},
		{"酢はすとも言う", "す"},
		{"ณ บ้านของฉัน", "ณ"},
		{"she codes in R", "R"},
		{"he knows C well", "C"},
		{"take vitamin D daily", "vitamin D"},
		{"the grade was an A", "A"},
		{"Blood type: B", "B"},
		{"ticket X for the gate", "x"},
		// names with signs
		{"AT&T contract", "AT&T"},
		{"We met at M&S", "M&S"},
		{"R&D budget", "R&D"},
		{"a shirt of H&M", "h&m"},
		{"AT＆Tとの契約", "AT&T"},
		{"AT&T’s offer", "AT&T"},
		{"programs in C++", "C++"},
		{"programs in C#", "C#"},
		{"C++を学ぶ", "C++"},
		{"C++17 compiler", "C++"},
		{"he had an A+", "A+"},
		{"Disney+ series", "Disney+"},
		{"built with .NET", ".NET"},
		{"keys are in .env", ".env"},
		{"Yahoo! mail", "Yahoo!"},
		{"O'Reilly book", "O'Reilly"},
		{"O’Reilly book", "O'Reilly"},
		{"OʼReilly book", "O'Reilly"},
		{"node.js service", "node.js"},
		{"write to anna.k+test@example.com", "anna.k+test@example.com"},
		{"version 1.2.3-rc1", "1.2.3-rc1"},
		{"meet at 9/11", "9/11"},
		{"P!nk tour", "P!nk"},
		{"A$AP Rocky", "A$AP"},
		{"will.i.am song", "will.i.am"},
		{"rock 'n' roll", "rock’n’roll"},
		// stop words alone
		{"We saw The Who live", "The Who"},
		{"Her motto is to be or not to be", "to be or not to be"},
		{"The IT team", "IT"},
		{"US office is closed", "US"},
		{"a song of The The", "The The"},
		{"WHO guidance of May", "WHO"},
		{"they watched It again", "It"},
		{"Will called about the car", "Will"},
		{"so what, he said", "so what"},
		{"the film Us", "Us"},
		{"IT is down", "it"},
		{"Them played here", "Them"},
		{"is there an IT budget", "IT budget"},
		{"Wer war das?", "Wer war das"},
		// other spellings
		{"ＡＢＣ商事", "abc"},
		{"ﬁreﬂy lamp", "firefly"},
		{"crème brûlée", "creme brulee"},
		{"creme brulee", "crème brûlée"},
		{"Große Straße", "grosse strasse"},
		{"GROSSE STRASSE", "große Straße"},
		{"Herr Müller", "Mueller"},
		{"Herr Mueller", "Müller"},
		{"Encyclopædia", "encyclopaedia"},
		{"hors d’œuvre", "hors d'oeuvre"},
		{"Søren", "Soren"},
		{"Søren", "Soeren"},
		{"Þór", "Thor"},
		{"“quoted” ‘words’", "\"quoted\" 'words'"},
		{"COVID‑19 test", "COVID-19"},
		{"COVID–19 test", "COVID-19"},
		{"Wi‑Fi box", "wifi"},
		{"wifi box", "Wi-Fi"},
		{"email list", "e-mail"},
		{"Kran\u00adken\u00adhaus", "Krankenhaus"},
		{"pass\u200bword", "password"},
		{"Krankenhaus", "Kran\u00adkenhaus"},
		{"\ufeffsecret garden", "secret"},
		{"cafe\u0301", "café"},
		{"İSTANBUL", "istanbul"},
		{"ISPARTA ılıca", "ilica"},
		{"Iğdır", "ığdır"},
		{"كـــتاب", "كتاب"},
		{"كِتَابٌ", "كتاب"},
		{"کتاب", "كتاب"},
		{"می\u200cخواهم", "میخواهم"},
		{"ёлка", "елка"},
		{"за́мок", "замок"},
		{"Ελλάδα", "ΕΛΛΑΔΑ"},
		{"שָׁלוֹם", "שלום"},
		{"١٢٣ شارع", "123"},
		{"५ दिन", "5"},
		{"½ cup", "1/2 cup"},
		{"H₂O", "H2O"},
		{"E=mc²", "mc2"},
		{"I love ❤️", "❤"},
		{"U.S. office", "US"},
		{"USA trip", "U.S.A."},
		{"non\u00a0breaking space", "breaking"},
		{"Đà Nẵng", "Da Nang"},
		{"ｶﾌｪ", "カフェ"},
		{"한글", "한글"},
	}
	for i, tt := range tests {
		t.Run(tt.query+" in "+tt.text, func(t *testing.T) {
			store := MustStore(t)
			for n, text := range append([]string{tt.text}, otherTexts...) {
				r := record.Record{ID: fmt.Sprint(n), Text: text, SessionID: fmt.Sprint("s", i%2*n)}
				if _, err := store.Save(t.Context(), kv.AgentScope("default", "ann"), r, ""); err != nil {
					t.Fatal(err)
				}
			}
			found, err := store.Query(t.Context(), kv.AgentScope("default", "ann"), question.Question{Text: tt.query, Limit: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(found); len(got) == 0 || got[0] != "0" {
				t.Errorf("finds %q", got)
			}
		})
	}
}

// What stands beside a hit in its session, or was said by the same, passes no least score by that.
func TestNeighboursPassNoLeastScore(t *testing.T) {
	for _, query := range []string{"what is Ann allergic to", "allergic to pears", "What did Eve say of the allergic Ann?"} {
		for _, least := range []float64{0.1, 0.3, 0.5} {
			for _, expand := range []bool{false, true} {
				store := MustStore(t)
				for n, text := range []string{"Ann is allergic to pears", "The wifi password is blue42", "Bob drives a red car", "Rent is due on the 1st"} {
					r := record.Record{ID: fmt.Sprint(n), Text: text, SessionID: "s", Author: "Eve"}
					if _, err := store.Save(t.Context(), kv.AgentScope("default", "ann"), r, ""); err != nil {
						t.Fatal(err)
					}
				}
				found, err := store.Query(t.Context(), kv.AgentScope("default", "ann"), question.Question{Text: query, MinScore: least, Expand: expand})
				if err != nil {
					t.Fatal(err)
				}
				if got := ids(found); len(got) != 1 || got[0] != "0" || found.Receipt.UnderMinScore != 3 {
					t.Errorf("%q with %v, expand %v: finds %q, %d under", query, least, expand, got, found.Receipt.UnderMinScore)
				}
			}
		}
	}
}
