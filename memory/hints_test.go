package memory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// A session whose lines have nothing to do with each other says nothing of them: in a memory
// of a few hundred short lines, too, what is found first without it is found first with it.
func TestSessionsOfShortLines(t *testing.T) {
	const lines, session, questions, first = 400, 25, 100, 5
	s := MustStore(t)
	p := newProse(11)
	alone, together := kv.AgentScope("default", "alone"), kv.AgentScope("default", "together")
	var asked []string
	for i := range lines {
		words := make([]string, 8+p.rng.IntN(8))
		for k := range words {
			words[k] = p.word()
		}
		r := record.Record{ID: fmt.Sprint(i), Text: strings.Join(words, " ")}
		if len(asked) < questions {
			asked = append(asked, strings.Join([]string{words[1], words[4], words[6], p.word()}, " "))
		}
		for _, scope := range []kv.Scope{alone, together} {
			if _, err := s.Save(t.Context(), scope, r, ""); err != nil {
				t.Fatal(err)
			}
			r.SessionID = fmt.Sprint("import ", i/session)
		}
	}
	found := 0
	for _, text := range asked {
		q := question.Question{Text: text, Limit: first, Mode: question.Lexical}
		var hits [2][]string
		for i, scope := range []kv.Scope{alone, together} {
			answer, err := s.Query(t.Context(), scope, q)
			if err != nil {
				t.Fatal(err)
			}
			hits[i] = ids(answer)
		}
		for _, id := range hits[0] {
			if slices.Contains(hits[1], id) {
				found++
			}
		}
	}
	if least := questions * first * 45 / 100; found < least {
		t.Errorf("of the first %d hits of %d questions without sessions, %d are found with them, want %d", first, questions, found, least)
	}
}

// In a memory of a dozen records every second vector stands out from the farthest ones: the
// record that holds the words of the question comes before what a weak model has near it.
func TestWordsAmongFewVectors(t *testing.T) {
	const questions, space, jones = 24, "test/256", "4"
	first := 0
	for seed := range uint64(questions) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := MustRig(t, memkv.New(nil))
		asked := direction(rng)
		for i, text := range smallMemory {
			// Which one is the nearest says nothing.
			r.MustSave(t, record.Record{ID: fmt.Sprint(i), Text: text, Embedding: mixed(rng, asked, 0.4+0.4*float32((uint64(i)+seed)%12)), EmbeddingSpace: space})
		}
		result := r.MustQuery(t, question.Question{Text: "Which boiler did Jones service?", Embedding: asked, EmbeddingSpace: space})
		if result.Hits[0].Record.ID == jones {
			first++
		}
	}
	if first < questions*9/10 {
		t.Errorf("the record with the words is the first of %d of %d questions", first, questions)
	}
}

var smallMemory = []string{
	"The tram to the harbour leaves at nine", "Maria likes her tea without sugar", "The red folder lies on the upper shelf",
	"Lunch with Peter was moved to Thursday", "Jones serviced the old boiler in the cellar", "The garden gate squeaks again",
	"Tickets for the opera are sold out", "Anna has finished the second chapter", "The printer needs a new cartridge",
	"Tom keeps his bicycle in the hall", "The bakery is closed on Mondays", "A parcel arrived from Lisbon",
}
