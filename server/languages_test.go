package server_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// languageCases are for each language two records and a question for each, whose words have
// other endings there than here.
var languageCases = []struct {
	language  string
	records   [2]string
	questions [2]string
}{
	{"english", [2]string{"My sisters lived in small houses by the lake", "The trains to Ghent were late again"}, [2]string{"Which sister lives in a house?", "Is the train late?"}},
	{"russian", [2]string{"Мои сёстры жили в красивых домах у озера", "Поезда снова опоздали на два часа"}, [2]string{"красивый дом сестры", "опоздавший поезд"}},
	{"german", [2]string{"Meine Eltern wohnten früher in kleinen Häusern am See", "Die Züge nach Gent kamen wieder zu spät"}, [2]string{"In welchem Haus haben wir gewohnt?", "Wann kommt der Zug?"}},
	{"french", [2]string{"Les chevaux étaient dans les écuries de mes parents", "Nous avons acheté des journaux à la gare"}, [2]string{"Où est le cheval ?", "Quel journal avons-nous acheté ?"}},
	{"spanish", [2]string{"Mis hermanas vivían en las ciudades grandes", "Los barcos llegaron tarde otra vez"}, [2]string{"¿Dónde vive mi hermana?", "¿Cuándo llega el barco?"}},
	{"portuguese", [2]string{"As minhas irmãs compraram casas pequenas", "Os comboios chegaram tarde outra vez"}, [2]string{"A minha irmã tem uma casa?", "Quando chega o comboio?"}},
	{"italian", [2]string{"I miei fratelli compravano libri vecchi", "I treni per Gand erano in ritardo"}, [2]string{"Che libro compra mio fratello?", "Quando parte il treno?"}},
	{"dutch", [2]string{"Mijn ouders lazen vroeger veel boeken", "De treinen naar Gent waren weer te laat"}, [2]string{"Welk boek las mijn ouder?", "Waar is de trein?"}},
	{"swedish", [2]string{"Mina systrar bodde i de röda stugorna", "Tågen till Gent var sena igen"}, [2]string{"Var är min röda stuga?", "Vilket tåg är det?"}},
	{"finnish", [2]string{"Minun kissani nukkuvat aina puutarhoissa", "Junat olivat taas myöhässä"}, [2]string{"Missä minun kissa on?", "Mikä juna on myöhässä?"}},
	{"turkish", [2]string{"Benim kedilerim her zaman bahçede uyuyor", "Otobüsler bugün çok geç geldi"}, [2]string{"Benim kedim nerede?", "Bu otobüs ne zaman geldi?"}},
	{"chinese", [2]string{"我的姐姐们住在湖边的小房子里", "去根特的火车又晚点了"}, [2]string{"姐姐的房子在哪里", "火车晚点"}},
	{"japanese", [2]string{"姉は湖のそばの小さな家に住んでいました", "ゲント行きの電車がまた遅れました"}, [2]string{"家に住む", "電車が遅れる"}},
	{"korean", [2]string{"언니는 호숫가의 작은 집에서 살았다", "겐트로 가는 기차가 또 늦었다"}, [2]string{"작은 집은 어디에", "기차는 늦었나"}},
	{"arabic", [2]string{"اشترينا المدرسة الكبيرة قرب البحيرة", "وصلت القطارات متأخرة مرة أخرى"}, [2]string{"مدرسة كبيرة", "قطار متأخر"}},
	{"hebrew", [2]string{"הספרים החדשים נמצאים בארון", "הרכבות לגנט איחרו שוב"}, [2]string{"ספר חדש", "רכבת"}},
	{"hindi", [2]string{"लड़कियों ने पुरानी किताबें पढ़ीं", "गाड़ियां फिर देर से आईं"}, [2]string{"लड़की किताब", "गाड़ी"}},
	{"greek", [2]string{"Οι γάτες κοιμούνται στους κήπους", "Τα τρένα άργησαν πάλι"}, [2]string{"η γάτα στον κήπο", "το τρένο"}},
}

// Without a setting, each record is read in its own language, in a memory that holds all of
// them: other forms of its words find it.
func TestLanguagesAtOnce(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, c := range languageCases {
		for i, text := range c.records {
			_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Id: fmt.Sprintf("%s-%d", c.language, i), Text: text})
			must(t, err)
		}
	}
	for _, c := range languageCases {
		for i, question := range c.questions {
			answer, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: question, Limit: 1})
			must(t, err)
			want := fmt.Sprintf("%s-%d", c.language, i)
			if hits := answer.GetHits(); len(hits) == 0 || hits[0].GetRecord().GetId() != want {
				t.Errorf("%q finds %v, want %s", question, hits, want)
			}
		}
	}
}
