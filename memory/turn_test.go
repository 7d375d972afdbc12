package memory_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// What comes after words such as "what I really want to ask is" is the question, whatever was
// said before, in several languages; to speak of questions is something else.
func TestQuestionBehindItsTurn(t *testing.T) {
	model := mustModel(t)
	once := &embeddedOnce{Model: model, known: map[string][]float32{}}
	for _, test := range []struct{ before, beside, answer, asked string }{
		{"The concert last night was far too loud.", "The tomatoes are finally red.", "I park in the garage under the opera.", "The concert was loud and the tomatoes are red. Stop, what I really want to ask is where I park."},
		{"The lecture about whales was great.", "The museum is closed on Mondays.", "My cat is called Momo.", "Let us leave the lecture about whales and the museum, my real question is what my cat is called."},
		{"Das Konzert gestern war viel zu laut.", "Die Tomaten sind endlich rot.", "Mein Zahnarzt ist Doktor Amsel.", "Das Konzert war laut und die Tomaten sind rot. Egal, was ich eigentlich fragen wollte: Wer ist mein Zahnarzt?"},
		{"El concierto de anoche fue muy ruidoso.", "Los tomates ya están rojos.", "Mi gata se llama Luna.", "El concierto fue ruidoso y los tomates están rojos. Da igual, lo que de verdad quiero preguntar es cómo se llama mi gata."},
		{"Le concert d'hier soir était trop fort.", "Les tomates sont enfin rouges.", "Je me gare sous l'opéra.", "Le concert était fort et les tomates sont rouges. Bref, ce que je voulais vraiment demander, c'est où je me gare."},
		{"昨晚的音乐会太吵了。", "阳台上的西红柿终于红了。", "我把车停在歌剧院下面的车库里。", "昨晚的音乐会太吵，西红柿也红了，停一下，我真正想问的是车停在哪里"},
		{"Il concerto di ieri era troppo forte.", "I pomodori sono finalmente rossi.", "La mia gatta si chiama Luna.", "Il concerto era forte e i pomodori sono rossi. Aspetta, quello che vorrei davvero chiedere è come si chiama la mia gatta."},
		{"O concerto de ontem foi alto demais.", "Os tomates já estão vermelhos.", "Meu dentista é o doutor Amsel.", "O concerto foi alto e os tomates estão vermelhos. Espera, o que eu quero mesmo perguntar é quem é meu dentista."},
		{"Вчерашний концерт был слишком громким.", "Помидоры наконец покраснели.", "Мой зубной врач — доктор Амзель.", "Концерт был громким, помидоры покраснели. Ладно, на самом деле я хотел спросить, кто мой зубной врач."},
		{"クジラの講演は面白かった。", "博物館は月曜日に休みです。", "猫の名前はモモです。", "クジラの講演と博物館の話は置いておいて、私の本当の質問は、猫の名前は何ですか？"},
		{"비가 많이 왔어.", "우체국 줄이 길었어.", "내 치과 의사는 암젤 선생님이야.", "비가 오고 우체국 줄도 길었어. 아무튼, 알고 싶은 건 치과 의사가 누구인지야."},
		{"Balina konferansı çok güzeldi.", "Müze pazartesi kapalıydı.", "Kedimin adı Momo.", "Balina konferansını ve müzeyi bırakalım, asıl sorum kedimin adı ne?"},
		{"The concert last night was far too loud.", "The tomatoes are finally red.", "I park in the garage under the opera.", "Where do I park, under the opera or elsewhere? That is what I really want to know."},
		{"I asked the bank about the invoice.", "The door of the cellar is stuck.", "The bank answered that the invoice was paid in May.", "What did the bank say about the invoice in May, was it paid? I have no further questions about the door."},
	} {
		t.Run(test.asked, func(t *testing.T) {
			r := MustRig(t, memkv.New(nil))
			r.opts.Embedder, r.opts.EmbedTimeout = once, time.Minute
			r.Reopen()
			answer := r.MustSave(t, record.Record{Text: test.answer}).ID
			for _, text := range append([]string{test.before, test.beside}, otherTalk[:12]...) {
				r.MustSave(t, record.Record{Text: text})
			}
			MustEmbedAll(t, r.Store, agent)
			if first := r.MustQuery(t, question.Question{Text: test.asked}).Hits[0].Record; first.ID != answer {
				t.Errorf("first is %q", first.Text)
			}
		})
	}
}

// embeddedOnce is the model, which works long at a text where other programs want the processor:
// it embeds each of those that all cases save once.
type embeddedOnce struct {
	*builtin.Model

	mu    sync.Mutex
	known map[string][]float32 // guarded by mu
}

func (e *embeddedOnce) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([][]float32, len(texts))
	for i, text := range texts {
		if e.known[text] == nil {
			made, err := e.Model.Embed(ctx, []string{text})
			if err != nil {
				return nil, err
			}
			e.known[text] = made[0]
		}
		all[i] = e.known[text]
	}
	return all, nil
}
