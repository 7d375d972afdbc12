package memory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Texts that have nothing to do with each other are found in the same order with and without
// the sessions under which they were imported.
func TestSessionsOfStrangers(t *testing.T) {
	const texts, session, questions, hits = 2000, 50, 20, 10
	s := MustStore(t)
	p := newProse(3)
	var strangers, imported []record.Record
	for i := range texts {
		r := record.Record{ID: fmt.Sprint(i), Text: p.text(150 + p.rng.IntN(150))}
		strangers = append(strangers, r)
		r.SessionID = fmt.Sprint("import ", i/session)
		imported = append(imported, r)
	}
	alone, together := kv.AgentScope("default", "alone"), kv.AgentScope("default", "together")
	for scope, all := range map[kv.Scope][]record.Record{alone: strangers, together: imported} {
		for batch := range slices.Chunk(all, 1000) {
			if _, err := s.SaveBatch(t.Context(), scope, batch, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	same := 0
	for range questions {
		q := question.Question{Text: p.text(150), Limit: hits, Mode: question.Lexical}
		var found [2][]string
		for i, scope := range []kv.Scope{alone, together} {
			answer, err := s.Query(t.Context(), scope, q)
			if err != nil {
				t.Fatal(err)
			}
			found[i] = ids(answer)
		}
		for i, id := range found[0] {
			if found[1][i] == id {
				same++
			}
		}
	}
	if least := questions * hits * 95 / 100; same < least {
		t.Errorf("%d of %d hits stand where they stand without sessions, want %d", same, questions*hits, least)
	}
}

// Who said something is no part of how long it is: the same texts are found in the same order
// whatever is known beside the time.
func TestLengthWithoutHints(t *testing.T) {
	s := MustStore(t)
	p := newProse(5)
	plain, named := kv.AgentScope("default", "plain"), kv.AgentScope("default", "named")
	for i := range 200 {
		r := record.Record{ID: fmt.Sprint(i), Text: p.text(10 + p.rng.IntN(300)), EventTime: start}
		for _, scope := range []kv.Scope{plain, named} {
			if _, err := s.Save(t.Context(), scope, r, ""); err != nil {
				t.Fatal(err)
			}
			r.Author = "Wilhelmina van der Zee"
		}
	}
	for range 20 {
		q := question.Question{Text: p.text(60), Limit: 10, Mode: question.Lexical}
		var found [2][]string
		for i, scope := range []kv.Scope{plain, named} {
			answer, err := s.Query(t.Context(), scope, q)
			if err != nil {
				t.Fatal(err)
			}
			found[i] = ids(answer)
		}
		if !slices.Equal(found[0], found[1]) {
			t.Errorf("%q finds %q without an author, %q with one", q.Text, found[0], found[1])
		}
	}
}
