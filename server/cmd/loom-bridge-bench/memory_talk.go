//go:build cgo && !norocksdb

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

const (
	// turnsPerSession is the length of a made-up session; real ones are about as
	// long.
	turnsPerSession = 20
	// changedWords is the share of the words of a copied turn that become others,
	// and newWords the share of new words.
	changedWords, newWords = 0.35, 0.02
	// shortWord is the length up to which words are left as they are: the glue of
	// the language.
	shortWord = 3
	// talkDimensions is the length of the vectors.
	talkDimensions = embedtest.DefaultDimensions
	// talkCorpus is how many turns the model of the vectors learns from.
	talkCorpus = 5000
	// talkSpace names the space of the vectors.
	talkSpace = "bench/lsa"
)

// talk is what people say to each other: the conversations of the evaluation
// data, again and again with other people and other words, or without them
// made-up words that are as unevenly common. The same numbers give the same
// turns.
type talk struct {
	real      []sets.Turn // session names are unique to each talk
	words     []string    // as often as they stand there
	questions []string
}

func (b *memoryBench) newTalk() (*talk, error) {
	if b.data() == "" {
		return madeUpTalk(), nil
	}
	set, err := sets.Locomo(b.data())
	if err != nil {
		return nil, err
	}
	t := &talk{}
	for _, sample := range set.Talks {
		for _, turn := range sample.Turns {
			turn.Session = sample.ID + " " + turn.Session
			t.real = append(t.real, turn)
		}
		for _, q := range sample.Questions {
			t.questions = append(t.questions, q.Text)
		}
	}
	for _, turn := range t.real {
		for _, word := range strings.Fields(turn.Text) {
			if len(word) > shortWord {
				t.words = append(t.words, word)
			}
		}
	}
	return t, nil
}

// madeUpTalk has turns of some twenty words by five pairs of people, and
// questions of a name and a few words.
func madeUpTalk() *talk {
	t := &talk{}
	for i, text := range texts(11, 2500) {
		t.words = append(t.words, strings.Fields(text)...)
		speaker := word(uint64(i/500*2 + i%2))
		t.real = append(t.real, sets.Turn{
			Author: strings.ToUpper(speaker[:1]) + speaker[1:], Text: text[:80+i%100],
			Session: fmt.Sprintf(" session_%d", i/turnsPerSession), Time: time.Date(2023, 1, 1+i/turnsPerSession, 12, 0, 0, 0, time.UTC),
		})
		if i%3 == 0 {
			t.questions = append(t.questions, "When did "+t.real[i].Author+" "+query(text)+"?")
		}
	}
	return t
}

// turns returns the first n turns. After the real ones, copies of them come.
func (t *talk) turns(n int) []*loombridgev1.MemorySaveRequest {
	drafts := make([]*loombridgev1.MemorySaveRequest, n)
	for i := range drafts {
		drafts[i] = t.turn(i)
	}
	return drafts
}

func (t *talk) turn(i int) *loombridgev1.MemorySaveRequest {
	turn, copied := t.real[i%len(t.real)], i/len(t.real)
	draft := &loombridgev1.MemorySaveRequest{
		Text: turn.Text, Author: turn.Author, SessionId: fmt.Sprintf("%d %s", copied, turn.Session),
		EventTime: timestamppb.New(turn.Time.AddDate(0, 0, -copied)),
	}
	if copied > 0 {
		draft.Text = t.vary(draft.Text, rand.New(rand.NewPCG(uint64(i), 5))) //nolint:gosec // repeatable on purpose
		draft.Author = fmt.Sprintf("%s %s", turn.Author, word(uint64(copied)))
	}
	return draft
}

// vary replaces some words of a text.
func (t *talk) vary(text string, rng *rand.Rand) string {
	words := strings.Fields(text)
	for i, w := range words {
		switch p := rng.Float64(); {
		case len(w) <= shortWord || p > changedWords:
		case p < newWords:
			words[i] = word(uint64(rng.IntN(vocabulary * 10)))
		default:
			words[i] = t.words[rng.IntN(len(t.words))]
		}
	}
	return strings.Join(words, " ")
}

// model returns vectors for what is said, made of the words alone: the bench
// downloads no model.
func (t *talk) model() *embedtest.LSA {
	drafts := t.turns(max(talkCorpus, len(t.real)))
	corpus := make([]string, len(drafts))
	for i, d := range drafts {
		corpus[i] = embedded(d)
	}
	return embedtest.TrainLSA(corpus, nil)
}

// embedded is the text that the vector of a turn is made of.
func embedded(d *loombridgev1.MemorySaveRequest) string { return d.GetAuthor() + ": " + d.GetText() }

// embed gives every record its vector, if the model knows a word of it.
func embed(model *embedtest.LSA, drafts []*loombridgev1.MemorySaveRequest) {
	for _, d := range drafts {
		if v := model.Vector(embedded(d)); dot(v, v) > 0 {
			d.Embedding, d.EmbeddingSpace = v, talkSpace
		}
	}
}

// ask returns all questions with their vectors.
func (t *talk) ask(model *embedtest.LSA) (all []askedText) {
	for _, text := range t.questions {
		if v := model.Vector(text); dot(v, v) > 0 {
			all = append(all, askedText{text, v})
		}
	}
	return all
}

// askedText is a query with its vector.
type askedText struct {
	text   string
	vector []float32
}
