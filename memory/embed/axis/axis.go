// Package axis recognises what texts do by their vectors: whether a text states a change, such
// as "we moved, it is Mill Lane now", whether a question asks how things were, and whether
// somebody comes to the question, as in "what I really want to ask is". It does so in
// every language that the model knows, without lists of words.
//
// An [Axis] leads from texts of one kind to texts of another. It is made of pairs of both that
// speak of the same or the like, as the model at hand sees them.
//
// Caveats: a single text is recognised in some nine of ten cases, by a model that knows its
// language. Make little of it alone.
package axis

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/embed"
)

// changes are texts that state a change, each with one that states the same or the like.
var changes = [][2]string{
	{"That has changed.", "It has been the same for years."},
	{"It is different now.", "It is the one that we have."},
	{"From now on it is another one.", "It takes place every week."},
	{"Correction: it is not what I told you before.", "Here is what I told you about."},
	{"It was cancelled and replaced by something else.", "That sounds great, thank you."},
	{"I no longer do that.", "I do that every day."},
	{"I changed my doctor, it is Doctor Weber now.", "My doctor is Doctor Weber."},
	{"We sold the old car and drive a van instead.", "We drive a van."},
	{"My phone number is a new one, use 555 0182 from now on.", "My phone number is 555 0182."},
	{"Forget what I said about Tuesday, the class is on Thursday.", "The class is on Thursday."},
	{"It turns out the parcel costs 12 dollars, not 9.", "The parcel costs 12 dollars."},
	{"I was wrong about the colour, the door is green.", "The door is green."},
	{"She corrected me: the shop opens at ten.", "The shop opens at ten."},
	{"I gave up tennis and took up rowing.", "I do rowing."},
	{"I don't drink coffee any more.", "I drink coffee."},
	{"The boss moved the deadline to the end of May.", "The deadline is the end of May."},
	{"They raised the rent to 900.", "The rent is 900."},
	{"My brother left Boston and settled in Denver.", "My brother lives in Denver."},
	{"The team picked another name, it is called Falcon.", "The team is called Falcon."},
	{"The flight was cancelled, we take the train.", "We take the train."},
	{"Das hat sich geändert, es ist jetzt ein anderes.", "Das ist bei uns so, es gefällt mir."},
	{"Ich habe den Arzt gewechselt, jetzt ist es Doktor Weber.", "Mein Arzt ist Doktor Weber."},
	{"Doch nicht Dienstag, der Kurs ist am Donnerstag.", "Der Kurs ist am Donnerstag."},
	{"Eso ha cambiado, ahora es otro.", "Eso es así, me gusta mucho."},
	{"Cambié de médico, ahora es el doctor Weber.", "Mi médico es el doctor Weber."},
	{"Cela a changé, maintenant c'est un autre.", "C'est comme ça, j'aime bien."},
	{"Finalement ce n'est pas mardi mais jeudi.", "C'est jeudi."},
	{"改了，现在是另一个。", "是这样，我很喜欢。"},
	{"医者を変えました、今はウェーバー先生です。", "医者はウェーバー先生です。"},
	{"Я сменил врача, теперь это доктор Вебер.", "Мой врач доктор Вебер."},
}

// pasts are questions for how things were, each with one for how they are.
var pasts = [][2]string{
	{"Where did I live before?", "Where do I live now?"},
	{"What was my first job?", "What is my job?"},
	{"What used to be my favourite food?", "What is my favourite food?"},
	{"Which car did I drive earlier?", "Which car do I drive?"},
	{"What was it called originally?", "What is it called?"},
	{"Who was my previous dentist?", "Who is my dentist?"},
	{"What was the old price?", "What is the price?"},
	{"Wo habe ich früher gewohnt?", "Wo wohne ich?"},
	{"Wie hieß mein erster Hund?", "Wie heißt mein Hund?"},
	{"Was war der alte Preis?", "Was ist der Preis?"},
	{"¿Dónde vivía antes?", "¿Dónde vivo ahora?"},
	{"¿Cuál era mi primer trabajo?", "¿Cuál es mi trabajo?"},
	{"Où est-ce que j'habitais avant ?", "Où est-ce que j'habite ?"},
	{"Quel était l'ancien prix ?", "Quel est le prix ?"},
	{"我以前住在哪里？", "我住在哪里？"},
	{"我的第一份工作是什么？", "我的工作是什么？"},
	{"以前はどこに住んでいましたか？", "今どこに住んでいますか？"},
	{"Где я жил раньше?", "Где я живу?"},
	{"Каким был старый номер?", "Какой номер?"},
}

// turns are words with which somebody comes to the question, each with others of the kind.
var turns = [][2]string{
	{"What I really want to ask is where I live.", "I have often thought about where I live."},
	{"My actual question is: who is my dentist?", "My neighbour is also a patient of my dentist."},
	{"Anyway, what I actually wanted to know is the price.", "The price is printed on the box."},
	{"But to come to the point, I meant to ask about the car.", "The car is parked in front of the house."},
	{"Never mind, the real question is when we leave.", "We leave early in the morning."},
	{"Stop, what I want to ask you is something else.", "We talked about something else for an hour."},
	{"The thing I wanted to ask you", "The thing I wanted to tell you"},
	{"So my question is", "So my opinion is"},
	{"But what I actually meant to ask", "But what I actually meant to buy"},
	{"Pero lo que de verdad quería saber", "Pero lo que de verdad quería comprar"},
	{"What I would like to know is", "What I would like to eat is"},
	{"Eigentlich wollte ich fragen, wo ich wohne.", "Ich habe erzählt, wo ich wohne."},
	{"Meine eigentliche Frage ist, wer der Arzt ist.", "Der Arzt ist freundlich."},
	{"Was ich wirklich wissen will", "Was ich wirklich gut finde"},
	{"Worum es mir eigentlich geht", "Wie es mir eigentlich geht"},
	{"Lo que de verdad quiero preguntar es dónde vivo.", "A mi hermano le gusta donde vivo."},
	{"Mi verdadera pregunta es qué precio tiene.", "Siempre tiene el mismo precio."},
	{"Lo que quiero saber", "Lo que quiero comer"},
	{"Mi pregunta es", "Mi opinión es"},
	{"Ce que je veux vraiment savoir, c'est où j'habite.", "J'aime bien le quartier où j'habite."},
	{"Ma vraie question est : quel est le prix ?", "Le prix est sur l'étiquette."},
	{"Ma question est", "Mon avis est"},
	{"Je voulais te demander", "Je voulais te remercier"},
	{"Quello che volevo davvero chiedere è dove abito.", "Mi piace molto dove abito."},
	{"Volevo sapere", "Volevo dormire"},
	{"O que eu realmente queria perguntar é onde moro.", "Gosto muito de onde moro."},
	{"Wat ik eigenlijk wilde vragen is waar ik woon.", "Ik vind het fijn waar ik woon."},
	{"我真正想问的是我住在哪里", "我很喜欢我住的地方"},
	{"其实我想问的是价格", "价格写在盒子上"},
	{"真正的问题是", "真正的朋友是"},
	{"本当に聞きたいのは、どこに住んでいるかです", "住んでいる所が好きです"},
	{"聞きたかったのは", "食べたかったのは"},
	{"本当に知りたいのは", "本当に食べたいのは"},
	{"제가 정말 묻고 싶은 것은 가격이에요", "가격은 상자에 적혀 있어요"},
	{"내가 묻고 싶은 건", "내가 먹고 싶은 건"},
	{"На самом деле я хотел спросить, где я живу", "Мне нравится там, где я живу"},
	{"Tak naprawdę chciałem zapytać, gdzie mieszkam", "Podoba mi się tam, gdzie mieszkam"},
	{"Asıl sormak istediğim şey nerede yaşadığım", "Yaşadığım yeri seviyorum"},
	{"ما أريد أن أسأله حقا هو أين أسكن", "أحب المكان الذي أسكن فيه"},
	{"สิ่งที่ฉันอยากถามจริงๆคือราคา", "ราคาอยู่บนกล่อง"},
}

// Axis is a direction in a model's space.
type Axis struct {
	direction []float32
	// middle lies half-way between the texts of either kind, and half is how far it is to them.
	middle, half float64
}

// Axes are the axes of one model.
type Axes struct {
	// Change leads from texts that state something to texts that state a change.
	Change Axis
	// Past leads from questions for how things are to those for how they were.
	Past Axis
	// Turn leads to words with which somebody who spoke of something else comes to the question.
	Turn Axis
}

// ErrUnknown: the model's vectors do not distinguish the kinds.
var ErrUnknown = errors.New("axis: the model does not distinguish changes and questions for the past from others")

// leastKnown is the part of the pairs that a model must distinguish without having seen them.
const leastKnown = 0.85

// New makes the axes of a model. Errors: errors of the model, ErrUnknown.
func New(ctx context.Context, by embed.Embedder) (*Axes, error) {
	var texts []string
	for _, pair := range slices.Concat(changes, pasts, turns) {
		texts = append(texts, pair[0], pair[1])
	}
	vectors, err := by.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	told, asked, turned := vectors[:2*len(changes)], vectors[2*len(changes):2*len(changes)+2*len(pasts)], vectors[2*len(changes)+2*len(pasts):]
	a := &Axes{Change: between(told), Past: between(asked), Turn: between(turned)}
	if a.Change.knows(told) < leastKnown || a.Past.knows(asked) < leastKnown || a.Turn.knows(turned) < leastKnown {
		return nil, ErrUnknown
	}
	return a, nil
}

// knows is the part of the pairs that an axis made of the others has on the right sides.
func (a Axis) knows(vectors [][]float32) float64 {
	right := 0
	for i := 0; i < len(vectors); i += 2 {
		others := between(slices.Delete(slices.Clone(vectors), i, i+2))
		if others.along(vectors[i]) > others.along(vectors[i+1]) {
			right++
		}
	}
	return 2 * float64(right) / float64(len(vectors))
}

// between makes the axis of pairs of vectors: it leads from the second ones to the first.
func between(vectors [][]float32) Axis {
	a := Axis{direction: make([]float32, len(vectors[0]))}
	for i, v := range vectors {
		part := float32(1-2*(i%2)) / float32(max(math.SmallestNonzeroFloat32, length(v)))
		for n, x := range v[:min(len(v), len(a.direction))] {
			a.direction[n] += part * x
		}
	}
	var sums [2]float64
	for i, v := range vectors {
		sums[i%2] += 2 * a.along(v) / float64(len(vectors))
	}
	a.middle, a.half = (sums[0]+sums[1])/2, (sums[0]-sums[1])/2
	return a
}

// Of says how far along the axis the text of a vector is: on average, 1 where it leads, and -1
// where it begins.
func (a *Axis) Of(v []float32) float64 { return (a.along(v) - a.middle) / a.half }

// along is how far a vector of length one would reach along the axis.
func (a *Axis) along(v []float32) float64 {
	sum := float32(0)
	for i, x := range v[:min(len(v), len(a.direction))] {
		sum += x * a.direction[i]
	}
	if l := length(v); l > 0 {
		return float64(sum) / l
	}
	return 0
}

func length(v []float32) float64 {
	sum := float32(0)
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(float64(sum))
}
