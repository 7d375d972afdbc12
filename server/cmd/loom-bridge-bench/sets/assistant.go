package sets

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"
)

//go:embed assistant.txt
var assistantTable string

// AssistantSize says how much is made up.
type AssistantSize struct {
	// Users is how many talks there are, each of one user with an assistant.
	Users int
	// Sessions is how many each has, and Messages how many messages a session has.
	Sessions, Messages int
}

// The sizes of the made-up talks with an assistant: for a test that takes seconds, and for
// the tables.
var (
	SmallAssistant = AssistantSize{Users: 1, Sessions: 6, Messages: 100}
	FullAssistant  = AssistantSize{Users: 5, Sessions: 12, Messages: 100}
)

// The classes of questions about talks with an assistant.
const (
	FactClass        = "fact"        // what the user stated
	UpdateClass      = "update"      // what the user stated last; what came before is stale
	QuestionClass    = "in question" // a fact that the user mentioned in a question
	PreferenceClass  = "preference"  // what the user likes
	InstructionClass = "instruction" // an instruction of the user to the assistant
	AnswerClass      = "answer"      // what the assistant said in the middle of an answer
	TwoClass         = "two"         // two statements of the user's
)

// AssistantClasses are all of them.
var AssistantClasses = []string{FactClass, UpdateClass, QuestionClass, PreferenceClass, InstructionClass, AnswerClass, TwoClass}

// The lengths of the assistant's answers, in words.
const minAnswer, maxAnswer = 300, 600

// Assistant makes up talks of users with an assistant. The assistant's answers are long and
// speak of what they were asked, in its words; what a question needs stands in one short
// message of the user's, mostly. The same size gives the same talks.
func Assistant(size AssistantSize) *Set {
	set := &Set{Name: "made-up assistant"}
	for user := range size.Users {
		w := &assistantWriter{
			rng:  rand.New(rand.NewPCG(uint64(user), 29)), //nolint:gosec // repeatable on purpose
			talk: &Talk{ID: fmt.Sprintf("user-%d", user+1)}, topics: readAssistantTopics(),
		}
		w.write(size)
		set.Talks = append(set.Talks, w.talk)
	}
	return set
}

// assistantTopic is what people talk about.
type assistantTopic struct {
	name                string
	things, deeds, chat []string
	lines               []assistantLine
}

// assistantLine is a line of the table of facts. Its fields are in the table's order, the
// values last.
type assistantLine struct {
	kind   string
	fields []string
	values []string
}

func readAssistantTopics() (topics []*assistantTopic) {
	var t *assistantTopic
	for line := range strings.Lines(assistantTable) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "", "#":
		case "topic":
			t = &assistantTopic{name: rest}
			topics = append(topics, t)
		case "things":
			t.things = strings.Split(rest, "; ")
		case "deeds":
			t.deeds = strings.Split(rest, "; ")
		case "chat":
			t.chat = append(t.chat, rest)
		default:
			fields := strings.Split(rest, " | ")
			last := len(fields) - 1
			t.lines = append(t.lines, assistantLine{kind, fields[:last], strings.Split(fields[last], "; ")})
		}
	}
	return topics
}

// assistantWriter writes one user's talk.
type assistantWriter struct {
	rng    *rand.Rand
	talk   *Talk
	topics []*assistantTopic
	said   [][]assistantMessage // by session, still to be written
	asked  []*Question          // in the table's order
}

// assistantMessage is a message of the user's with the answer to it.
type assistantMessage struct {
	topic *assistantTopic
	text  string
	about []string // words of the message that the answer repeats
	// tip stands in the middle of the answer; empty: none does.
	tip string
	// stated is the fact that the message or its answer states, and written notes the id of
	// that turn; nil: no fact.
	stated  string
	written func(id string)
}

func (w *assistantWriter) write(size AssistantSize) {
	w.said = make([][]assistantMessage, size.Sessions)
	for _, topic := range w.topics {
		for _, line := range topic.lines {
			w.plan(topic, line)
		}
	}
	begin := time.Date(2025, 3, 3, 18, 0, 0, 0, time.UTC)
	for session := range size.Sessions {
		w.session(session, size.Messages, begin.AddDate(0, 0, 7*session))
	}
	w.askTwo()
	for _, q := range w.asked {
		q.After = len(w.talk.Turns)
		w.talk.Questions = append(w.talk.Questions, *q)
	}
}

// plan chooses the values and sessions of a line of the table, and adds questions for it.
func (w *assistantWriter) plan(topic *assistantTopic, line assistantLine) {
	values := slices.Clone(line.values)
	w.rng.Shuffle(len(values), func(i, k int) { values[i], values[k] = values[k], values[i] })
	tell := func(session int, pattern, value string, written func(string)) {
		stated := strings.ReplaceAll(pattern, "{}", value)
		m := assistantMessage{topic: topic, text: w.aside(stated), about: content(pattern), stated: stated, written: written}
		w.said[session] = append(w.said[session], m)
	}
	session := w.rng.IntN(len(w.said))
	if line.kind == "also" {
		tell(session, line.fields[0], values[0], nil)
		return
	}
	q := &Question{Text: line.fields[len(line.fields)-1], Class: lineClasses[line.kind]}
	w.asked = append(w.asked, q)
	stated := func(id string) {
		q.Stale = append(q.Stale, q.Evidence...)
		q.Evidence = []string{id}
	}
	switch line.kind {
	case "fact":
		sessions := w.rng.Perm(len(w.said))[:1+w.rng.IntN(min(4, len(w.said), len(values)))]
		slices.Sort(sessions)
		for i, at := range sessions {
			tell(at, line.fields[min(i, 1)], values[i], stated)
		}
		if len(sessions) > 1 {
			q.Class = UpdateClass
		}
	case "tip":
		tip := strings.ReplaceAll(line.fields[0], "{}", values[0])
		w.said[session] = append(w.said[session], assistantMessage{topic: topic, text: w.chat(topic), tip: tip, stated: tip, written: stated})
	default:
		tell(session, line.fields[0], values[0], stated)
	}
}

// lineClasses are the classes of what lines of a kind are asked for.
var lineClasses = map[string]string{
	"fact": FactClass, "told": QuestionClass, "like": PreferenceClass, "rule": InstructionClass, "tip": AnswerClass,
}

// askTwo joins every two questions for facts that never changed.
func (w *assistantWriter) askTwo() {
	var before *Question
	for _, q := range slices.Clone(w.asked) {
		switch {
		case q.Class != FactClass:
		case before == nil:
			before = q
		default:
			w.asked = append(w.asked, &Question{
				Text: before.Text + " And then: " + q.Text, Class: TwoClass, Evidence: append(slices.Clone(before.Evidence), q.Evidence...),
			})
			before = nil
		}
	}
}

// session writes the messages of a session, topic by topic.
func (w *assistantWriter) session(number, messages int, at time.Time) {
	all := w.said[number]
	for len(all) < messages/2 {
		topic := w.topics[w.rng.IntN(len(w.topics))]
		text := w.chat(topic)
		all = append(all, assistantMessage{topic: topic, text: text, about: content(text)})
	}
	order := w.rng.Perm(len(w.topics))
	w.rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	slices.SortStableFunc(all, func(a, b assistantMessage) int {
		return order[slices.Index(w.topics, a.topic)] - order[slices.Index(w.topics, b.topic)]
	})
	name := fmt.Sprintf("session-%d", number+1)
	add := func(author, text string) {
		id := fmt.Sprintf("%s-%d", name, len(w.talk.Turns))
		w.talk.Turns = append(w.talk.Turns, Turn{ID: id, Session: name, Author: author, Text: text, Time: at})
	}
	for _, m := range all {
		add("user", m.text)
		add("assistant", w.answer(m))
		if m.written == nil {
			continue
		}
		turn := &w.talk.Turns[len(w.talk.Turns)-2]
		if m.tip != "" {
			turn = &w.talk.Turns[len(w.talk.Turns)-1]
		}
		turn.Tells = []Told{{turn.ID, m.stated}}
		m.written(turn.ID)
	}
}

// chat is a message without a fact about the user.
func (w *assistantWriter) chat(t *assistantTopic) string {
	switch w.rng.IntN(3) {
	case 0:
		return pick(w.rng, t.chat)
	case 1:
		return fmt.Sprintf("Tell me more about the %s, and what it has to do with the %s.", pick(w.rng, t.things), pick(w.rng, t.things))
	}
	return fmt.Sprintf("What if I %s and forget the %s?", pick(w.rng, t.deeds), pick(w.rng, t.things))
}

// aside puts filler text around the user's fact.
func (w *assistantWriter) aside(text string) string {
	if !strings.HasSuffix(text, "?") {
		text += pick(w.rng, []string{"", "", " Just so that you know.", " Does that change anything?", " Thanks for the last answer, too."})
	}
	return pick(w.rng, []string{"", "", "", "Before I forget: ", "A small thing. ", "Good morning! "}) + text
}

// answer returns the assistant's long answer, which repeats the question.
func (w *assistantWriter) answer(m assistantMessage) string {
	size := minAnswer + w.rng.IntN(maxAnswer-minAnswer-40)
	var b strings.Builder
	words, said := 0, 0
	say := func(text string) {
		b.WriteString(text)
		b.WriteByte(' ')
		words, said = words+len(strings.Fields(text)), said+1
	}
	say(w.repeat(m, "Let us look at %s together."))
	for words < size {
		if m.tip != "" && words > size/2 {
			say(m.tip)
			m.tip = ""
		}
		if said%9 > 0 {
			say(w.advice(m.topic))
			continue
		}
		b.WriteString("\n\n")
		say(w.repeat(m, pick(w.rng, assistantRepeats)))
	}
	return strings.TrimSpace(b.String())
}

// repeat fills words of the user's message in.
func (w *assistantWriter) repeat(m assistantMessage, pattern string) string {
	about := m.about
	if len(about) == 0 {
		about = []string{m.topic.name}
	}
	about = about[:min(3, len(about))]
	return fmt.Sprintf(pattern, strings.Join(about, " and "))
}

// advice is a sentence about a topic.
func (w *assistantWriter) advice(t *assistantTopic) string {
	text := pick(w.rng, assistantAdvice)
	for strings.Contains(text, "{thing}") {
		text = strings.Replace(text, "{thing}", pick(w.rng, t.things), 1)
	}
	for strings.Contains(text, "{deed}") {
		text = strings.Replace(text, "{deed}", pick(w.rng, t.deeds), 1)
	}
	return text
}

// assistantRepeats repeat the question.
var assistantRepeats = []string{
	"Back to %s, because that was the question.",
	"Keep %s in mind while you read on.",
	"For %s the same holds, with one difference.",
	"Since you brought up %s, a word about what others do.",
	"In short, %s matters less than people think.",
}

// assistantAdvice are sentences about things and deeds of a topic.
var assistantAdvice = []string{
	"First {deed}, then look at the {thing} again.",
	"The {thing} depends on the {thing} more than most guides admit.",
	"Many people {deed} too late and blame the {thing}.",
	"If the {thing} gives you trouble, {deed} and wait for two days.",
	"There are three reasons for this, and the {thing} is the one that is easiest to change.",
	"You do not need a special {thing} for it; a plain one does the job.",
	"It is worth the time to {deed}, even when the {thing} seems fine.",
	"A common mistake is to change the {thing} and the {thing} at the same moment, so that nobody knows what helped.",
	"Write down how the {thing} was before, and compare after a week.",
	"Some would {deed} first; I would start with the {thing}.",
	"When in doubt, leave the {thing} alone and {deed}.",
	"Good results come from small steps: {deed}, rest, and only then touch the {thing}.",
	"The price of a {thing} says little about how long it lasts.",
	"Ask somebody who has done it before to show you how to {deed}.",
	"That is why the {thing} comes up in nearly every talk about this.",
	"Should the {thing} get worse, stop and {deed}.",
	"On a normal day the {thing} needs no more than ten minutes.",
	"Think of the {thing} as a habit rather than a task.",
	"You can {deed} in the evening and see to the {thing} in the morning.",
	"My summary of this part: {deed}, {deed}, and be patient with the {thing}.",
	"Here the rule of thumb is simple, although the {thing} has exceptions.",
	"Nothing of this is urgent, but the {thing} rewards an early start.",
	"Two things decide it, the {thing} and the {thing}, and of these the former is cheaper.",
	"Check the {thing} once more before you {deed}.",
}

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

// content are the longer words of a text, without its gap.
func content(text string) (words []string) {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		if len(w) > 4 && !slices.Contains(words, strings.ToLower(w)) {
			words = append(words, strings.ToLower(w))
		}
	}
	return words
}
