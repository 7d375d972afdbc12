package axis_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/embed/axis"
	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
)

// chance is a model that knows nothing.
type chance struct{ rng *rand.Rand }

func (chance) Space() string { return "chance" }

func (c chance) Embed(_ context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i := range all {
		all[i] = make([]float32, 64)
		for k := range all[i] {
			all[i][k] = float32(c.rng.NormFloat64())
		}
	}
	return all, nil
}

func TestModelThatKnowsNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		if _, err := axis.New(t.Context(), chance{rand.New(rand.NewPCG(seed, 1))}); !errors.Is(err, axis.ErrUnknown) {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// What tells of a change, what asks for the past, what comes to a question, what instructs for good
// and what asks for work is recognised in other words and in languages that the axes were not made with.
func TestAxes(t *testing.T) {
	t.Parallel()
	path := builtin.Find(filepath.Join("..", "..", "..", "bin", "loom-bridge-server"))
	if path == "" {
		t.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	model, err := builtin.New(path)
	if err != nil {
		t.Fatal(err)
	}
	axes, err := axis.New(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	of := func(a axis.Axis, text string) float64 {
		v, err := model.EmbedQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return a.Of(v)
	}
	for _, pair := range [][2]string{
		{"I quit the old firm, my new boss is called Ravi.", "My boss is called Ravi."},
		{"The doctor says it is 50 mg these days, not 20.", "The doctor prescribed me 20 mg."},
		{"Ich habe die Bank gewechselt, jetzt bin ich bei der Sparkasse.", "Ich bin bei der Sparkasse."},
		{"Der Termin wurde verschoben, er ist am Freitag.", "Der Termin ist am Freitag."},
		{"Me mudé, ahora vivo en Sevilla.", "Vivo en Sevilla con mi hermana."},
		{"J'ai changé de voiture, c'est une Renault maintenant.", "J'ai une Renault bleue."},
		{"Ho cambiato lavoro, adesso sono in banca.", "Lavoro in banca."},
		{"我换了工作，现在在银行上班。", "我在银行上班。"},
		{"引っ越して、今は大阪に住んでいます。", "大阪に住んでいます。"},
		{"Я переехала, теперь живу в Казани.", "Я живу в Казани."},
	} {
		if changed, stated := of(axes.Change, pair[0]), of(axes.Change, pair[1]); changed <= stated+0.2 {
			t.Errorf("%q: %.2f, %q: %.2f", pair[0], changed, pair[1], stated)
		}
	}
	for _, pair := range [][2]string{
		{"Which bank was I with before?", "Which bank am I with?"},
		{"What was the first name of our band?", "What is our band called?"},
		{"Wer war früher mein Chef?", "Wer ist mein Chef?"},
		{"¿Quién era antes mi jefa?", "¿Quién es mi jefa?"},
		{"Qui était mon ancien patron ?", "Qui est mon patron ?"},
		{"Dove abitavo prima?", "Dove abito?"},
		{"我以前的老板是谁？", "我的老板是谁？"},
		{"Кто был моим начальником раньше?", "Кто мой начальник?"},
	} {
		if past, now := of(axes.Past, pair[0]), of(axes.Past, pair[1]); past <= 0 || now >= 0 {
			t.Errorf("%q: %.2f, %q: %.2f", pair[0], past, pair[1], now)
		}
	}
	for _, pair := range [][2]string{
		{"my real question is which", "I have no questions"},
		{"What I was going to ask", "I already reviewed the questions"},
		{"was ich eigentlich fragen wollte", "was ich eigentlich essen wollte"},
		{"ce que je voulais vraiment demander", "ce que je voulais vraiment acheter"},
		{"quello che volevo chiedere", "quello che volevo bere"},
		{"o que eu quero mesmo perguntar", "o que eu quero mesmo comprar"},
		{"我真正想问的是", "我真正想吃的是"},
		{"на самом деле я хотел спросить", "на самом деле я хотел отдохнуть"},
	} {
		if turns, other := of(axes.Turn, pair[0]), of(axes.Turn, pair[1]); turns < 0.9 || other > 0.8 {
			t.Errorf("%q: %.2f, %q: %.2f", pair[0], turns, pair[1], other)
		}
	}
	for _, pair := range [][2]string{
		{"Whenever I ask for a workout, leave out jumps.", "I left out the jumps in my workout."},
		{"Always quote the law when you advise me on taxes.", "Advise me on my taxes, please."},
		{"Wenn ich dir Fotos schicke, beschreibe immer die Farben.", "Beschreibe mir die Farben des Fotos."},
		{"Cuando te pida un poema, hazlo siempre sin rima.", "Escribe un poema sin rima."},
		{"Quand je demande un menu, évite toujours le poisson.", "Fais un menu avec du poisson."},
		{"以后写诗的时候，每次都不要押韵。", "我写的诗不押韵。"},
		{"メニューを考えるときは、いつも魚を避けてください。", "魚のメニューを考えて。"},
		{"Когда я прошу меню, всегда избегай рыбы.", "Придумай меню с рыбой."},
	} {
		if rule, other := of(axes.Rule, pair[0]), of(axes.Rule, pair[1]); rule < 0.3 || other > 0.3 {
			t.Errorf("%q: %.2f, %q: %.2f", pair[0], rule, pair[1], other)
		}
	}
	for _, pair := range [][2]string{
		{"Write a poem about the harbour", "Who wrote the poem about the harbour?"},
		{"Help me set up a workout", "How often do I do my workout?"},
		{"Erfinde eine Geschichte für die Kinder", "Wie heißen die Kinder?"},
		{"Escribe un poema sobre el puerto", "¿Quién escribió el poema?"},
		{"Propose un menu pour dimanche", "Qui vient dimanche ?"},
		{"写一首关于港口的诗", "港口在哪里？"},
		{"Придумай меню на воскресенье", "Кто придёт в воскресенье?"},
	} {
		if request, question := of(axes.Request, pair[0]), of(axes.Request, pair[1]); request < 0.4 || question > 0.2 {
			t.Errorf("%q: %.2f, %q: %.2f", pair[0], request, pair[1], question)
		}
	}
}
