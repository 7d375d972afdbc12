package memory_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// otherTalk is what else is said.
var otherTalk = []string{
	"The concert last night was so loud that my ears still ring.", "I baked two trays of cinnamon rolls for the neighbours.",
	"Our train was late again, so I read half a magazine.", "The hike along the river took us six hours.",
	"My aunt sent a postcard from Iceland with a puffin on it.", "I could not sleep because of the storm.",
	"The new season of that detective show is rather slow.", "We painted the fence in the afternoon.",
	"Somebody left a guitar in the hallway.", "The tomatoes on the balcony are finally red.",
	"I bought a second-hand lamp at the flea market.", "The museum was closed on Monday, what a pity.",
	"My back hurts after carrying the boxes upstairs.", "Thanks for the recipe, everybody liked the soup.",
	"The kids built a castle out of cardboard.", "I forgot my umbrella and got soaked.",
	"The lecture about whales was fascinating.", "We watched the sunset from the bridge.",
	"My keyboard is missing a key since this morning.", "There was a long queue at the post office.",
	"The swimming pool was nearly empty at noon.", "I finally fixed the squeaking door.",
	"The flowers smell wonderful in the rain.", "Our choir sang in the town hall on Saturday.",
}

// mustModel is the built-in model; a test without it is left out.
func mustModel(t *testing.T) *builtin.Model {
	t.Helper()
	path := builtin.Find(filepath.Join("..", "bin", "loom-bridge-server"))
	if path == "" {
		t.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	model, err := builtin.New(path)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// The newest telling of what changed comes first and names what it replaces, told and asked in
// any words and languages; what is asked of the past or as of an earlier moment does not.
//
// F08
func TestNewestTellingFirst(t *testing.T) {
	model := mustModel(t)
	for _, test := range []struct {
		told        [3]string // the last one is how it is
		asked, past string
	}{
		{
			[3]string{"My dentist is Doctor Amsel in Mill Street.", "I left Doctor Amsel, my dentist is Doctor Reyes now.", "Doctor Reyes retired, so the dentist I see these days is Doctor Petrov."},
			"Who is my dentist?", "Who was my first dentist?",
		},
		{
			[3]string{"The car insurance costs 410 euros a year.", "They raised the car insurance to 455 euros.", "I haggled, the car insurance is down to 390 euros."},
			"How much is the car insurance?", "What was the old price of the car insurance?",
		},
		{
			[3]string{"Mein Yogakurs ist montags um sieben.", "Der Yogakurs wurde auf Mittwoch verlegt.", "Doch nicht mittwochs, der Yogakurs ist jetzt donnerstags."},
			"Wann ist mein Yogakurs?", "Wann war mein Yogakurs früher?",
		},
		{
			[3]string{"Mi contable se llama Teresa.", "Teresa se fue, ahora mi contable es Joaquín.", "Cambié otra vez de contable, ahora es Beatriz."},
			"¿Cómo se llama mi contable?", "¿Cómo se llamaba antes mi contable?",
		},
		{
			[3]string{"Mon bureau est au deuxième étage.", "On a déménagé, mon bureau est au cinquième étage.", "Finalement mon bureau est au rez-de-chaussée, plus au cinquième."},
			"Où est mon bureau ?", "Où était mon bureau avant ?",
		},
		{
			[3]string{"我的猫叫小白。", "给猫改了名字，现在叫豆豆。", "孩子们又改了，猫现在叫芝麻。"},
			"我的猫叫什么名字？", "我的猫以前叫什么名字？",
		},
		{
			[3]string{"Мой врач — доктор Орлова.", "Я сменил врача, теперь это доктор Белов.", "Белов уехал, теперь мой врач — доктор Зимина."},
			"Кто мой врач?", "Кто был моим врачом раньше?",
		},
	} {
		t.Run(test.asked, func(t *testing.T) {
			r := MustRig(t, memkv.New(nil))
			r.opts.Embedder, r.opts.EmbedTimeout = model, time.Minute
			r.Reopen()
			var told []string
			var after []time.Time
			for i, text := range otherTalk {
				r.clock.Set(r.clock.Now().Add(time.Hour))
				r.MustSave(t, record.Record{Author: "user", Text: text, SessionID: fmt.Sprint("s", i/6)})
				if i%8 == 3 {
					r.clock.Set(r.clock.Now().Add(time.Hour))
					told = append(told, r.MustSave(t, record.Record{Author: "user", Text: test.told[i/8], SessionID: fmt.Sprint("s", i/6)}).ID)
					after = append(after, r.clock.Now().Add(time.Minute))
				}
			}
			MustEmbedAll(t, r.Store, agent)
			answer := r.MustQuery(t, question.Question{Text: test.asked, Limit: 3})
			if answer.Hits[0].Record.ID != told[2] {
				t.Errorf("first is %q", answer.Hits[0].Record.Text)
			} else if older := answer.Hits[0].Older; !slices.Contains(older, told[1]) && !slices.Contains(older, told[0]) {
				t.Errorf("it replaces %q", older)
			}
			if found := ids(r.MustQuery(t, question.Question{Text: test.asked, Limit: question.MaxLimit})); !slices.Contains(found, told[0]) || !slices.Contains(found, told[1]) {
				t.Error("what was replaced is not found")
			}
			for _, hit := range r.MustQuery(t, question.Question{Text: test.past, Limit: 3}).Hits {
				if len(hit.Older) > 0 {
					t.Errorf("%q: %q replaces %q", test.past, hit.Record.Text, hit.Older)
				}
			}
			if got := ids(r.MustQuery(t, question.Question{Text: test.asked, Limit: 3, Moment: past.Moment{AsOf: after[0]}})); len(got) == 0 || got[0] != told[0] {
				t.Errorf("as of the first telling: %q", got)
			}
			if got := r.MustQuery(t, question.Question{Text: test.asked, Limit: 3, Without: []string{"newer"}}).Hits[0]; len(got.Older) > 0 {
				t.Errorf("without the signal it replaces %q", got.Older)
			}
		})
	}
}

// The newest telling comes first that is not among what words and vectors find for the
// question: it is near to what was told before.
func TestNewestTellingFarFromTheQuestion(t *testing.T) {
	model := mustModel(t)
	r := MustRig(t, memkv.New(nil))
	r.opts.Embedder, r.opts.EmbedTimeout = model, time.Minute
	r.Reopen()
	tests := []struct{ before, now, asked string }{
		{"My savings are with the Harbour Bank.", "Closed the old account, the Nordkasse has all of my savings now.", "Which bank do I use?"},
		{"My mobile contract is with Vexacom.", "Cancelled Vexacom, the phone contract runs with Tellus from June on.", "Who is my network provider?"},
		{"Our cleaner is called Dorota.", "Dorota has stopped, now Milan does the cleaning.", "Who tidies up our house?"},
		{"Mein Stromanbieter ist Windhaus.", "Windhaus gekündigt, der Strom kommt jetzt von Solaris.", "Woher beziehen wir Energie?"},
		{"Mi gimnasio es el Atlas.", "Dejé el Atlas, ahora entreno en el gimnasio Olimpo.", "¿Dónde hago deporte?"},
	}
	told := make([][2]string, len(tests))
	for n := range 6 {
		for i, text := range otherTalk {
			text = fmt.Sprintf("%s That was on day %d.", text, n*n+i)
			if at := i / 4; i%4 == 3 && n%4 == 1 && at < len(tests) {
				text = tests[at].before
				if n > 1 {
					text = tests[at].now
				}
			}
			r.clock.Set(r.clock.Now().Add(time.Hour))
			saved := r.MustSave(t, record.Record{Author: "user", Text: text, SessionID: fmt.Sprint("s", n, i/6)})
			if at := i / 4; i%4 == 3 && n%4 == 1 && at < len(tests) {
				told[at][n/4] = saved.ID
			}
		}
	}
	MustEmbedAll(t, r.Store, agent)
	for i, test := range tests {
		hit := r.MustQuery(t, question.Question{Text: test.asked, Limit: 3}).Hits[0]
		if hit.Record.ID != told[i][1] || !slices.Equal(hit.Older, []string{told[i][0]}) {
			t.Errorf("%q: first is %q, which replaces %q", test.asked, hit.Record.Text, hit.Older)
		}
	}
}

// Of a dozen statements about the same things none replaces one about something else of them,
// though it comes later and states a change.
func TestLaterStatementOfSomethingElse(t *testing.T) {
	model := mustModel(t)
	r := MustRig(t, memkv.New(nil))
	r.opts.Embedder, r.opts.EmbedTimeout = model, time.Minute
	r.Reopen()
	for _, text := range []string{
		"The bakery opens on the 9th of November", "Our table number at the fair is 17", "The course fee is 35 euros a month",
		"Petra is the head of the choir", "The boiler makes a noise", "We bought flour for three weeks", "My brother lives in Lyon",
		"I was up at half past five", "The rent of the bakery was cut to 900", "We pay 60 euros a day for the table at the fair",
		"The teacher of the course now costs us 80 a lesson", "I grew up in a village near Metz", "The choir sings in the old mill", "My cousin is called Ines",
	} {
		r.clock.Set(r.clock.Now().Add(time.Hour))
		r.MustSave(t, record.Record{Author: "user", Text: text})
	}
	MustEmbedAll(t, r.Store, agent)
	for asked, first := range map[string]string{
		"When does the bakery open?":         "The bakery opens on the 9th of November",
		"What is our table number?":          "Our table number at the fair is 17",
		"What is the monthly fee?":           "The course fee is 35 euros a month",
		"In which city does my brother live": "My brother lives in Lyon",
	} {
		if hit := r.MustQuery(t, question.Question{Text: asked}).Hits[0]; hit.Record.Text != first || len(hit.Older) > 0 {
			t.Errorf("%q: first is %q, which replaces %q", asked, hit.Record.Text, hit.Older)
		}
	}
}

// Of many of whom the same is told, each is found by the name, and what is told later of another
// replaces nothing; what is told later of the same one does.
func TestLaterStatementOfSomebodyElse(t *testing.T) {
	model := mustModel(t)
	for _, test := range []struct {
		told, asked   string // of a name and a value
		names, values string
		changed       string // of the first one; empty for nothing
	}{
		{
			"%s is allergic to %s.", "What is %s allergic to?",
			"Anna Peter Maria Tom Lucy Omar Priya Marek", "nuts eggs milk soy fish nuts eggs milk", "",
		},
		{
			"%s lives in %s.", "Where does %s live?",
			"Anna Peter Maria Tom Lucy Omar Priya Marek Sven Chloe Ruth Helen Carlos Lena Igor Yuki Wei Fatima Noah Emma", "Rome Oslo Paris Madrid Vienna", "",
		},
		{
			"Server %s has %s GB of memory.", "How much memory does %s have?",
			"web-01 web-02 web-03 web-04 web-05 web-06 web-07 web-08 web-09 web-10 web-11 web-12 web-13 web-14 web-15 web-16", "8 9 16", "Server web-01 has 64 GB of memory now.",
		},
		{
			"Die Durchwahl von %s ist %s.", "Welche Durchwahl hat %s?",
			"Anna Jonas Lena Felix Marie Paul Greta Emil Ida Oskar Frieda Anton Klara Bruno Hanna Moritz Elsa Theo Paula Karl", "3007 3014 3021 3028 3035 3042 3049", "",
		},
		{
			"%s住在%s。", "%s住在哪里?",
			"小明 李华 王芳 张伟 刘洋 陈静 杨帆 赵敏 黄磊 周杰 吴倩 徐丽 孙强 马超 朱琳 胡军", "北京 上海 广州 深圳", "",
		},
		{
			"%s живёт в %s.", "Где живёт %s?",
			"Анна Пётр Мария Иван Ольга Сергей Елена Павел Наталья Игорь Татьяна Олег Ирина Борис Светлана Денис", "Москве Казани Самаре Омске", "",
		},
	} {
		t.Run(test.asked, func(t *testing.T) {
			r := MustRig(t, memkv.New(nil))
			r.opts.Embedder, r.opts.EmbedTimeout = model, time.Minute
			r.Reopen()
			save := func(text string) string {
				r.clock.Set(r.clock.Now().Add(time.Hour))
				return r.MustSave(t, record.Record{Text: text}).ID
			}
			names, values := strings.Fields(test.names), strings.Fields(test.values)
			told := make([]string, len(names))
			for i, name := range names {
				told[i] = save(fmt.Sprintf(test.told, name, values[i%len(values)]))
			}
			first := told[0]
			if test.changed != "" {
				told[0] = save(test.changed)
			}
			MustEmbedAll(t, r.Store, agent)
			for i, name := range names {
				hit := r.MustQuery(t, question.Question{Text: fmt.Sprintf(test.asked, name)}).Hits[0]
				if hit.Record.ID != told[i] {
					t.Errorf("%s: first is %q", name, hit.Record.Text)
				}
				if slices.ContainsFunc(hit.Older, func(id string) bool { return id != first || i > 0 }) {
					t.Errorf("%s: %q replaces %q", name, hit.Record.Text, hit.Older)
				}
			}
		})
	}
}

// In a memory of two or of five, the later telling of a change comes first, in other words than the
// one before and than the question; what somebody else changed, or what changed of something else,
// does not.
func TestChangeAmongFew(t *testing.T) {
	once := &embeddedOnce{Model: mustModel(t), known: map[string][]float32{}}
	for _, test := range []struct {
		before, now, asked string
		other              string // changes nothing that is asked for
		others             []string
	}{
		{"Ann lives in Rome.", "Ann moved to Oslo.", "Where does Ann live?", "Robert moved to Quito.", []string{"Robert's favourite drink is cider.", "The roof was leaking all night.", "I like long walks in the rain."}},
		{"The day pass costs 12 euros.", "The day pass went up to 19 euros.", "How much is the day pass?", "The locker went up to 8 euros.", []string{"The boat tour is on Monday.", "The roof was leaking all night.", "I like long walks in the rain."}},
		{"The choir rehearsal is on Monday.", "I was wrong about the choir rehearsal, it is on Thursday.", "When is the choir rehearsal?", "The flea market was moved to Saturday.", []string{"Hanna leads the choir.", "The roof was leaking all night.", "I like long walks in the rain."}},
		{"Sabine wohnt in Rom.", "Sabine ist nach Graz gezogen.", "Wo wohnt Sabine?", "Die Lesung wurde auf Samstag verschoben.", []string{"Jürgen arbeitet als Koch.", "Das Dach war die ganze Nacht undicht.", "Die Suppe braucht mehr Salz."}},
		{"El concierto se celebra el viernes.", "El concierto se canceló.", "¿Se celebra el concierto?", "Lucía se mudó a Quito.", []string{"Ramón trabaja de cocinero.", "El tejado goteó toda la noche.", "La sopa necesita más sal."}},
		{"Solange conduit une Fiat.", "Solange a vendu sa voiture et roule en Skoda.", "Quelle voiture a Solange ?", "La réunion a été reportée au jeudi.", []string{"Yves habite à Nantes.", "Le toit a fui toute la nuit.", "La soupe manque de sel."}},
		{"ランチは1200円です。", "ランチは1900円に値上がりしました。", "ランチはいくらですか。", "会議は木曜日に変更されました。", []string{"健太さんは大阪に住んでいます。", "屋根から一晩中雨が漏れていました。", "スープに塩が足りません。"}},
		{"门票的价格是12元。", "门票涨到19元了。", "门票的价格是多少？", "李雷搬到上海去了。", []string{"王建国的职业是司机。", "屋顶漏了一整夜的雨。", "汤里要多放点盐。"}},
		{"공연은 월요일에 있어요.", "공연은 목요일로 미뤄졌어요.", "공연은 언제 있어요?", "지수 씨의 번호가 010-8871로 바뀌었어요.", []string{"민호 씨는 부산에 살아요.", "지붕에서 밤새 비가 샜어요.", "국에 소금이 더 필요해요."}},
		{"Начальник Кати: Воронцов.", "У Кати теперь другой начальник, Зайцев.", "Кто начальник Кати?", "Экскурсию перенесли на субботу.", []string{"Дима живёт в городе Омск.", "Крыша протекала всю ночь.", "В супе мало соли."}},
		{"Defne'nin telefon numarası 555 0134.", "Defne'nin numarası değişti, yenisi 555 0871.", "Defne'nin telefon numarası kaç?", "Toplantı perşembe gününe alındı.", []string{"Kerem Konya şehrinde yaşıyor.", "Çatı bütün gece aktı.", "Çorbaya biraz daha tuz lazım."}},
		{"رقم سلمى هو 5550134.", "تغير رقم سلمى وأصبح 5550871.", "ما هو رقم سلمى؟", "تأجل موعد الاجتماع إلى يوم الخميس.", []string{"مهنة ياسر هي طيار.", "كان السقف يسرب الماء طوال الليل.", "الحساء يحتاج إلى ملح."}},
	} {
		t.Run(test.asked, func(t *testing.T) {
			first := func(told ...string) memory.Hit {
				r := MustRig(t, memkv.New(nil))
				r.opts.Embedder, r.opts.EmbedTimeout = once, time.Minute
				r.Reopen()
				for _, text := range told {
					r.clock.Set(r.clock.Now().Add(time.Hour))
					r.MustSave(t, record.Record{Text: text})
				}
				MustEmbedAll(t, r.Store, agent)
				return r.MustQuery(t, question.Question{Text: test.asked, Limit: 3}).Hits[0]
			}
			for _, told := range [][]string{{test.before, test.now}, {test.others[0], test.before, test.others[1], test.now, test.others[2]}} {
				if hit := first(told...); hit.Record.Text != test.now {
					t.Errorf("of %d, first is %q", len(told), hit.Record.Text)
				}
			}
			for _, told := range [][]string{{test.before, test.other}, {test.others[0], test.before, test.others[1], test.other, test.others[2]}} {
				if hit := first(told...); hit.Record.Text != test.before || len(hit.Older) > 0 {
					t.Errorf("of %d with %q, first is %q", len(told), test.other, hit.Record.Text)
				}
			}
		})
	}
}

// What has the number that is asked for, or is the only one with the word, comes first among few
// alike ones, whatever was told later of others.
func TestNamedAmongFew(t *testing.T) {
	once := &embeddedOnce{Model: mustModel(t), known: map[string][]float32{}}
	for _, test := range []struct {
		asked string
		want  int
		told  []string
	}{
		{"marker1x7", 0, []string{"soak-7 remembers marker1x7 of its work", "soak-7 remembers marker2x7 of its work", "soak-7 remembers marker3x7 of its work"}},
		{"marker2x7", 1, []string{"soak-7 remembers marker1x7 of its work", "soak-7 remembers marker2x7 of its work", "soak-7 remembers marker3x7 of its work"}},
		{"Who paid invoice 1234?", 0, []string{"Invoice 1234 was paid by Ann.", "Invoice 1235 was paid by Bob."}},
		{"What does room 12 have?", 0, []string{"Room 12 has a beamer.", "Room 14 has a whiteboard now."}},
		{"What did build 4.2 break?", 0, []string{"Build 4.2 broke the login.", "Build 4.3 broke the search."}},
		{"Ist die Rechnung 17 bezahlt?", 0, []string{"Die Rechnung 17 ist bezahlt.", "Die Rechnung 18 ist jetzt offen."}},
		{"blue", 0, []string{"The blue lamp is in the hall.", "The green lamp is in the cellar now."}},
		{"ticket ABC-17", 0, []string{"Ticket ABC-17 is done.", "Ticket ABC-18 was moved to Friday."}},
	} {
		t.Run(test.asked, func(t *testing.T) {
			r := MustRig(t, memkv.New(nil))
			r.opts.Embedder, r.opts.EmbedTimeout = once, time.Minute
			r.Reopen()
			for _, text := range test.told {
				r.clock.Set(r.clock.Now().Add(time.Hour))
				r.MustSave(t, record.Record{Text: text})
			}
			MustEmbedAll(t, r.Store, agent)
			if hit := r.MustQuery(t, question.Question{Text: test.asked, Limit: 3}).Hits[0]; hit.Record.Text != test.told[test.want] || len(hit.Older) > 0 {
				t.Errorf("first is %q, in place of %d", hit.Record.Text, len(hit.Older))
			}
		})
	}
}
