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

// What tells of a change, what asks for the past and what comes to a question is recognised in
// other words and in languages that the axes were not made with.
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
}
